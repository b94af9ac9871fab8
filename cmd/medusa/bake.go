package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"medusa/artifacts/oci"
	"medusa/internal/contract"
)

func newBakeCmd() *cobra.Command {
	var o oci.BakeOptions
	var key string
	cmd := &cobra.Command{
		Use:   "bake --base IMAGE --artifact FILE -t REGISTRY/REPOSITORY:TAG",
		Short: "Append an artifact to a container image",
		Long: `Makes an image that is the base with FILE in one more layer, and with ` + contract.EnvArtifact + ` set to its place, so that medusa restore
in it needs no argument. Base and result are in registries; no container engine takes part. Prints the manifest's digest.
FILE.proof, which medusa pull -o FILE leaves, goes with it; --verify KEY demands that it has a signature by KEY.`,
		Example: "  medusa bake --base registry.example/serve:1 --artifact llama.medusa -t registry.example/serve:1-llama",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Base == "" || o.Artifact == "" || o.Target == "" {
				return usageError{errors.New("bake needs --base, --artifact and --tag")}
			}
			if err := trusted(cmd, o.Artifact, key); err != nil {
				return err
			}
			bar, done := transferBar(cmd.ErrOrStderr(), "push")
			digest, err := (&oci.Client{Progress: bar}).Bake(cmd.Context(), o)
			done()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), digest)
			return err
		},
	}
	verifyFlag(cmd, &key)
	cmd.Flags().StringVar(&o.Base, "base", "", "reference to the image to start from")
	cmd.Flags().StringVar(&o.Artifact, "artifact", "", "artifact file")
	cmd.Flags().StringVarP(&o.Target, "tag", "t", "", "reference for the result")
	cmd.Flags().StringVar(&o.Platform, "platform", "", "of a base for several platforms, such as linux/arm64 (default: this one)")
	return cmd
}
