package materialize

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"medusa/interpose"
)

// checkBefore finds what would fail only after minutes of work: the engine's command, its plug-ins, the artifact's folder.
func (o *Options) checkBefore() error {
	if _, err := exec.LookPath(o.Argv[0]); err != nil {
		return fmt.Errorf("run engine: %w", err)
	}
	if err := interpose.PluginsFor(o.Argv, o.Library); err != nil {
		return err
	}
	if o.Output == "" {
		return nil
	}
	if info, err := os.Stat(o.Output); err == nil && info.IsDir() {
		return fmt.Errorf("write artifact %s: it is a folder", o.Output)
	}
	f, err := os.CreateTemp(filepath.Dir(o.Output), ".medusa-*")
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err // of the folder, not of the file that was tried
		}
		return fmt.Errorf("write artifact %s: open folder %s: %w", o.Output, filepath.Dir(o.Output), err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
