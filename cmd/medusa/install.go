package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"medusa/artifacts/probe"
	"medusa/internal/atomicfile"
	"medusa/interpose"
)

func newInstallCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Copy Medusa into a directory that the engine's container mounts",
		Long: `Copies medusa, its probe and the interposer to DIR, in the layout in which they find each other. The library and the plug-ins for
PyTorch and vLLM are copied too if they exist. For init containers: image volumes are mounted noexec, so files that an engine
executes must be in an emptyDir.`,
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
			if err := interpose.CheckPlace(filepath.Join(args[0], "lib", interpose.LibraryName)); err != nil {
				return fmt.Errorf("install: %w", err)
			}
			lib := filepath.Dir(library)
			files := []part{
				{exe, "medusa", 0o755, true},
				{filepath.Join(filepath.Dir(exe), probe.Name), probe.Name, 0o755, false},
				{library, filepath.Join("lib", interpose.LibraryName), 0o755, true},
				{filepath.Join(lib, sessionLibrary), filepath.Join("lib", sessionLibrary), 0o755, false},
			}
			plugins, err := pluginFiles(filepath.Join(lib, "python"))
			if err != nil {
				return fmt.Errorf("install: %w", err)
			}
			for _, f := range append(files, plugins...) {
				to := filepath.Join(args[0], f.to)
				if err := copyFile(f.from, to, f.mode); errors.Is(err, os.ErrNotExist) && !f.needed {
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

// sessionLibrary is the library that the plug-ins load (cmd/libmedusa).
const sessionLibrary = "libmedusa.so"

// part is a file to install.
type part struct {
	from, to string
	mode     os.FileMode
	needed   bool
}

// pluginFiles lists the plug-ins for engines in Python. An absent directory is an empty list.
func pluginFiles(dir string) (out []part, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if path == dir && errors.Is(err, os.ErrNotExist) {
			return fs.SkipAll
		}
		if err == nil && entry.IsDir() && entry.Name() == "__pycache__" {
			return fs.SkipDir
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out = append(out, part{path, filepath.Join("lib", "python", name), 0o644, true})
		return err
	})
	return out, err
}

// copyFile replaces a file in one step, so that an engine that starts meanwhile loads either the old file or the new one.
func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(to, mode, in)
}
