package main

import (
	"github.com/spf13/cobra"

	"medusa/artifacts/trust"
	"medusa/internal/printable"
)

// trusted asks the policy (MEDUSA_TRUST), narrowed to a key unless that is empty, about an artifact file.
func trusted(cmd *cobra.Command, path, key string) error {
	policy, err := trust.FromEnv(key)
	if err != nil {
		return err
	}
	warning, err := policy.JudgeFile(path)
	if warning != "" {
		printable.Fprintf(cmd.ErrOrStderr(), "medusa: %s\n", warning)
	}
	return err
}

func verifyFlag(cmd *cobra.Command, key *string) {
	cmd.Flags().StringVar(key, "verify", "", "public key that must have signed the artifact (PEM, Ed25519)")
}
