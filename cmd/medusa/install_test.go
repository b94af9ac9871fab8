package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The plug-ins beside the interposer are installed without Python's compiled files. There may be no plug-ins.
func TestPluginFiles(t *testing.T) {
	dir := t.TempDir()
	if got, err := pluginFiles(filepath.Join(dir, "python")); err != nil || len(got) != 0 {
		t.Errorf("without any: %v, %v", got, err)
	}
	for _, name := range []string{"python/medusa_graphs/__init__.py", "python/medusa_graphs/__pycache__/x.pyc", "python/p-0.1.dist-info/entry_points.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := pluginFiles(filepath.Join(dir, "python"))
	if err != nil || len(got) != 2 || got[0].to != "lib/python/medusa_graphs/__init__.py" || got[1].to != "lib/python/p-0.1.dist-info/entry_points.txt" {
		t.Fatalf("%+v, %v", got, err)
	}
	to := filepath.Join(dir, "opt", got[0].to)
	if err := copyFile(got[0].from, to, got[0].mode); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v: others cannot read it, or execute it", info.Mode(), err)
	}
}
