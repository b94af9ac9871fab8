package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/materialize"
)

func newVerifyCmd() *cobra.Command {
	var verbose bool
	var key string
	cmd := &cobra.Command{
		Use:   "verify FILE [-- ENGINE [ARG...]]",
		Short: "Check an artifact; given an engine, compare restored with native graphs again",
		Long: `Reads every section of FILE and checks every reference in it. With --verify KEY, or a policy (` + contract.EnvTrust + `) that requires it, the
signature in FILE.proof is checked first; medusa pull -o FILE writes it. With an engine command it also repeats the verification
of materialize: the engine starts natively and restored, both replay every graph on the same data, and all memory written is
compared bit by bit.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if len(own) != 1 {
				return usageError{errors.New("verify needs one artifact")}
			}
			if err := trusted(cmd, own[0], key); err != nil {
				return err
			}
			art, err := artifacts.Check(own[0])
			if err != nil {
				return err
			}
			if len(argv) == 0 {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: intact (not replayed: no engine given)\n", own[0])
				return err
			}
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			o := materialize.Options{Argv: argv, Library: library}
			if verbose {
				o.Log = cmd.ErrOrStderr()
			}
			var done func()
			o.Step, done = progress(cmd.ErrOrStderr(), !verbose)
			ranks, err := materialize.Verify(cmd.Context(), o, own[0], art)
			done()
			if err != nil {
				return err
			}
			for i, record := range ranks {
				name := own[0]
				if len(ranks) > 1 {
					name = fmt.Sprintf("%s rank %d", name, i)
				}
				if _, err = printable.Fprintf(cmd.OutOrStdout(), "%s: %d graphs verified on %s\n", name, len(record.Graphs), record.Device); err != nil {
					return err
				}
			}
			return nil
		},
	}
	verifyFlag(cmd, &key)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the engine's output")
	return cmd
}
