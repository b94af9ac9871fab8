// Package checkpoints makes the models that whole-process tests serve side by side.
//
// In: the output of make, and a folder. Out: folders of checkpoints whose answers differ. Fails: as the file system does.
package checkpoints

import (
	"bytes"
	"os"
	"path/filepath"
)

// Names are those of the folders: the small checkpoint, and one with the same weights and other angles of its positions. Answers of the one are not those
// of the other.
var Names = []string{"tiny", "turned"}

// Make puts them into a folder. build is the output of make, beside the sources.
func Make(build, folder string) error {
	from := filepath.Join(filepath.Dir(build), "runners", "reference", "models", "tiny")
	for _, name := range Names {
		to := filepath.Join(folder, name)
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			return err
		}
		if name == "tiny" {
			continue
		}
		path := filepath.Join(to, "config.json")
		config, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		turned := bytes.Replace(config, []byte(`"rope_theta": 10000.0`), []byte(`"rope_theta": 300.0`), 1)
		if err := os.WriteFile(path, turned, 0o600); err != nil {
			return err
		}
	}
	return nil
}
