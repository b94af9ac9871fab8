package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"medusa/doctor"
	"medusa/interpose"
)

func newInstallCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Copy Medusa into a directory that an engine's container sees",
		Long: `Copies medusa, its probe and the interposer to DIR, with the layout that they find each other by. For init containers: image
volumes are mounted noexec, so that what engines execute has to lie in an emptyDir.`,
		Example: "  medusa install /opt/medusa",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("install: %w", err)
			}
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			files := []struct {
				from, to string
				needed   bool
			}{
				{exe, "medusa", true},
				{filepath.Join(filepath.Dir(exe), doctor.ProbeName), doctor.ProbeName, false},
				{library, filepath.Join("lib", interpose.LibraryName), true},
			}
			for _, f := range files {
				to := filepath.Join(args[0], f.to)
				if err := copyFile(f.from, to); errors.Is(err, os.ErrNotExist) && !f.needed {
					continue
				} else if err != nil {
					return fmt.Errorf("install %s: %w", to, err)
				}
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), to); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// copyFile puts an executable in place in one step: an engine that is starting has the old one or the new.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), ".install-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // fails where the rename took the name away
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o755)
	}
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	return err
}
