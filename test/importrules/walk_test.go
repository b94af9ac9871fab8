package importrules

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// eachGoFile calls f for each file of Go in the tree, tests too, but for built files and test data. A walk that finds too few files fails:
// it would break no rule.
func eachGoFile(t *testing.T, f func(path, folder string) error) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "build" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".git")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		files++
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		return f(path, folder)
	})
	if err != nil || files < 300 {
		t.Fatalf("read %d files of Go: %v", files, err)
	}
}
