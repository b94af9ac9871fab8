package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/inspect"
	"medusa/internal/printable"
)

// errDiffer ends diff with exit code 1; what differs is on standard output.
var errDiffer = errors.New("artifacts differ")

// trouble is an error of diff other than a difference, told apart by its exit code as diff(1) does.
type trouble struct{ err error }

func (t trouble) Error() string { return t.err.Error() }
func (t trouble) Unwrap() error { return t.err }

func newDiffCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two artifacts",
		Long: `Lists in what two artifacts differ: identity, KV cache, kernels, allocations, graphs, saved buffers and directories. Dates and
measured times are not compared. The exit code is 0 where nothing differs, 1 where something does, 2 or more where that
cannot be said.`,
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
