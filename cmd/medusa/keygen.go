package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"medusa/artifacts/trust"
)

func newKeygenCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key pair for signing artifacts",
		Long: `Writes a private key to FILE and the public key to FILE.pub (Ed25519, PEM), for push --sign and pull --verify. Keys made with
openssl genpkey -algorithm ed25519 work as well.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := trust.Generate(args[0]); err != nil {
				return err
			}
			public, err := trust.ReadPublic(args[0] + ".pub")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s and %s.pub: key %s\n", args[0], args[0], trust.KeyID(public))
			return err
		},
	}
}
