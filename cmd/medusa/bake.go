package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"medusa/artifacts/oci"
	"medusa/internal/contract"
	"medusa/restore/supervisor"
)

func newBakeCmd() *cobra.Command {
	var o oci.BakeOptions
	var key string
	client := &oci.Client{}
	cmd := &cobra.Command{
		Use:   "bake --base IMAGE --artifact FILE -t REGISTRY/REPOSITORY:TAG",
		Short: "Append an artifact to a container image",
		Long: `Adds FILE to the base image as one more layer and sets ` + contract.EnvArtifact + ` to its path, so that medusa restore in the new
image needs no argument. Base and result are in registries; no container engine is needed. Prints the manifest's digest.
With --precompile PYTHON, an interpreter on this machine of the version that the image's packages are for, the image gets the bytecode of its Python sources
as well: images whose packages were installed without it, such as vLLM's own, compile in each container anew.
If medusa pull -o FILE left FILE.proof, that file is added too. --verify KEY demands a signature by KEY in it.`,
		Example: "  medusa bake --base registry.example/serve:1 --artifact llama.medusa -t registry.example/serve:1-llama",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Base == "" || o.Artifact == "" || o.Target == "" {
				return usageError{errors.New("bake needs --base, --artifact and --tag")}
			}
			path, release, err := supervisor.File(o.Artifact)
			if err != nil {
				return err
			}
			defer release()
			o.Artifact = path
			if err := trusted(cmd, o.Artifact, key); err != nil {
				return err
			}
			bar, done := transferBar(cmd.ErrOrStderr(), "push")
			client.Progress = bar
			digest, err := client.Bake(cmd.Context(), o)
			done()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), digest)
			return err
		},
	}
	verifyFlag(cmd, &key)
	registryFlags(cmd, client)
	cmd.Flags().StringVar(&o.Base, "base", "", "reference to the image to start from")
	cmd.Flags().StringVar(&o.Artifact, "artifact", "", "artifact: a file, or a name or digest in the cache")
	cmd.Flags().StringVarP(&o.Target, "tag", "t", "", "reference for the result")
	cmd.Flags().StringVar(&o.Platform, "platform", "", "platform to take from a multi-platform base, such as linux/arm64 (default: this machine's)")
	cmd.Flags().StringVar(&o.Python, "precompile", "", "interpreter that compiles the image's Python sources, such as python3.12")
	return cmd
}
