package main

import (
	"github.com/spf13/cobra"

	"medusa/artifacts/trust"
	"medusa/internal/printable"
	"medusa/restore/supervisor"
)

// trusted asks the policy (MEDUSA_TRUST) whether an artifact file may be used. A non-empty key narrows the policy to that key.
func trusted(cmd *cobra.Command, path, key string) error {
	policy, err := trust.FromEnv(key)
	if err != nil {
		return err
	}
	warning, err := supervisor.Judge(path, policy)
	if warning != "" {
		printable.Fprintf(cmd.ErrOrStderr(), "medusa: %s\n", warning)
	}
	return err
}

func verifyFlag(cmd *cobra.Command, key *string) {
	cmd.Flags().StringVar(key, "verify", "", "public key that must have signed the artifact (PEM, Ed25519)")
}
