package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/inspect/doctor"
	"medusa/internal/printable"
	"medusa/restore/supervisor"
)

var errUnfit = errors.New("examine: something that Medusa needs is missing")

func newDoctorCmd() *cobra.Command {
	var format, relax string
	cmd := &cobra.Command{
		Use:   "doctor [ARTIFACT...]",
		Short: "Check GPU, driver and Medusa's parts, and whether artifacts can be restored here",
		Long: `Looks for Medusa's parts, tries the driver's features in a separate process, and compares artifacts with this machine.
A feature is available, not supported, or inconclusive if the driver failed for another reason. Engine and model are not
compared here: see medusa identity --against. In a pod, privileges that neither Medusa nor an engine needs are listed, but do
not change the exit code.

The exit code is 1 if a part, or a feature that every restore needs, is missing, 3 if a given artifact cannot be restored here,
and 5 if all that cannot are damaged.`,
		Example: "  medusa doctor llama.medusa",
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" {
				return usageError{fmt.Errorf("unknown output %q: table or json", format)}
			}
			relaxed, err := artifacts.ParseRelaxed(relax)
			if err != nil {
				return usageError{err}
			}
			r, err := doctor.Examine(cmd.Context(), doctor.Options{Artifacts: args, Relaxed: relaxed, Checked: func(path string) artifacts.Relaxed {
				return supervisor.CheckedDrivers(path, cmd.ErrOrStderr())
			}})
			if err != nil {
				return err
			}
			if format == "json" {
				err = printable.JSON(cmd.OutOrStdout(), r)
			} else {
				err = r.WriteTable(cmd.OutOrStdout())
			}
			if err != nil {
				return err
			}
			if !r.OK() {
				return errUnfit
			}
			return verdict(r.Artifacts)
		},
	}
	cmd.Flags().StringVar(&relax, "relax", "", "factors that may differ, as in restore")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// verdict is the error of the artifacts that cannot be restored here, with the names of all.
func verdict(all []doctor.Verdict) error {
	var names []string
	var missing, damaged, other bool
	for _, v := range all {
		if v.Restores == doctor.No {
			names = append(names, v.File)
			missing = missing || errors.Is(v.Err, fs.ErrNotExist)
			damaged = damaged || errors.Is(v.Err, artifacts.ErrCorrupt)
			other = other || !errors.Is(v.Err, fs.ErrNotExist) && !errors.Is(v.Err, artifacts.ErrCorrupt)
		}
	}
	err := artifacts.ErrIncompatible
	switch {
	case len(names) == 0:
		return nil
	case missing && !damaged && !other:
		err = fs.ErrNotExist
	case damaged && !other:
		err = artifacts.ErrCorrupt
	}
	return fmt.Errorf("examine %s: %w", strings.Join(names, ", "), err)
}
