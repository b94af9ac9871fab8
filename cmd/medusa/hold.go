package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/interpose"
	"medusa/restore/supervisor"
)

// newHoldCmd is what the plug-in calls (runners/torch/python/medusa_graphs/attach.py). Users set $MEDUSA_ARTIFACT.
func newHoldCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "hold",
		Short:  "Prepare a start for an engine that runs already, until standard input ends",
		Hidden: true,
		Args:   usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			told, err := contract.ReadStart(func(name string) string {
				if name == contract.EnvRun { // the start that this one is to become
					return string(contract.RunRestore)
				}
				return os.Getenv(name)
			})
			if err != nil {
				return usageError{err}
			}
			o := supervisor.Options{Artifact: supervisor.Choice{Ref: told.Artifact}, Strict: told.Strict, Check: told.Check, Lazy: told.Lazy, Status: told.Status,
				Stderr: cmd.ErrOrStderr()}
			if o.Artifact.Ref == "" {
				return usageError{fmt.Errorf("hold needs $%s", contract.EnvArtifact)}
			}
			if o.Relax, err = artifacts.ParseRelaxed(told.Relax); err != nil {
				return usageError{err}
			}
			if o.Library, err = interpose.FindLibrary(); err != nil {
				return err
			}
			signal.Ignore(syscall.SIGTERM) // the engine's end is what counts
			return supervisor.Hold(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
