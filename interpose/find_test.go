package interpose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// touch makes files of a text below a folder, and those above them.
func touch(t *testing.T, dir, text string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInstallations(t *testing.T) {
	for _, row := range []struct{ layout, command, library string }{
		{"an archive", ".", "lib"},
		{"make install", "bin", "lib/medusa"},
		{"a virtual environment", "bin", "lib/python3.12/site-packages/medusa_graphs/lib"},
		{"one on a system with lib64", "bin", "lib64/python3.9/site-packages/medusa_graphs/lib"},
		{"Debian's Python", "bin", "lib/python3.11/dist-packages/medusa_graphs/lib"},
		{"pip install --target", "bin", "medusa_graphs/lib"},
		{"nothing", "bin", ""},
	} {
		dir := t.TempDir()
		want := ""
		if row.library != "" {
			want = filepath.Join(dir, row.library, LibraryName)
			touch(t, dir, "", filepath.Join(row.library, LibraryName))
		}
		if got := installed(filepath.Join(dir, row.command)); got != want {
			t.Errorf("%s: %q, want %q", row.layout, got, want)
		}
	}
}

func TestPluginsFor(t *testing.T) {
	dir := t.TempDir()
	touch(t, dir, "", "none/"+LibraryName, "whole/"+LibraryName, "whole/python/x", "site/medusa_graphs/lib/"+LibraryName)
	touch(t, dir, "#!/usr/bin/env python3\n", "vllm")
	touch(t, dir, "#!/bin/sh\n'''exec' /a/long/path/bin/python3 \"$0\" \"$@\"\n' '''\n", "long")
	touch(t, dir, "#!/bin/sh\nexec engine\n# not in python\n", "shell")
	touch(t, dir, "", "python3.12", "empty")
	for _, row := range []struct {
		library, command string
		lacks            bool
	}{
		{"none", "vllm", true}, {"none", "long", true}, {"none", "python3.12", true}, {"none", "shell", false}, {"none", "empty", false}, {"none", "absent", false},
		{"whole", "vllm", false}, {"site/medusa_graphs/lib", "vllm", false},
	} {
		err := PluginsFor([]string{filepath.Join(dir, row.command)}, filepath.Join(dir, row.library, LibraryName))
		if (err != nil) != row.lacks || err != nil && !strings.Contains(err.Error(), "none/python") {
			t.Errorf("%s with %s: %v", row.command, row.library, err)
		}
	}
	env := WithPlugin([]string{"PYTHONPATH=/mine"}, filepath.Join(dir, "whole", LibraryName))
	if want := "PYTHONPATH=" + filepath.Join(dir, "whole", "python") + ":/mine"; len(env) != 1 || env[0] != want {
		t.Errorf("environment %q, want %q", env, want)
	}
	if env := WithPlugin([]string{"A=b"}, filepath.Join(dir, "site/medusa_graphs/lib", LibraryName)); len(env) != 1 {
		t.Errorf("with a wheel: environment %q", env)
	}
}
