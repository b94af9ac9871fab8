package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/inspect"
	"medusa/internal/printable"
)

// errDiffer makes diff exit with 1. The differences are on standard output.
var errDiffer = errors.New("artifacts differ")

// trouble is any other error of diff. It has its own exit code, as in diff(1).
type trouble struct{ err error }

func (t trouble) Error() string { return t.err.Error() }
func (t trouble) Unwrap() error { return t.err }

func newDiffCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two artifacts",
		Long: `Lists the differences of two artifacts: identity, KV cache, kernels, allocations, graphs, saved buffers and directories. Dates and
measured times are not compared. The exit code is 0 if they are equal, 1 if they differ, and 2 or more if they cannot be compared.`,
		Example: "  medusa diff llama.medusa llama-new-driver.medusa",
		Args:    usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" {
				return usageError{fmt.Errorf("unknown output %q: table or json", format)}
			}
			a, err := artifacts.Read(args[0])
			if err != nil {
				return trouble{err}
			}
			b, err := artifacts.Read(args[1])
			if err != nil {
				return trouble{err}
			}
			d, err := inspect.Compare(a, b)
			if err != nil {
				return trouble{err}
			}
			if format == "json" {
				err = printable.JSON(cmd.OutOrStdout(), d)
			} else {
				err = d.WriteTable(cmd.OutOrStdout(), args[0], args[1])
			}
			switch {
			case err != nil:
				return trouble{err}
			case !d.Empty():
				return errDiffer
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}
