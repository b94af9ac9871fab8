package pool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	python := write("python3", "\x7fELF")
	script := write("serve", "#!"+python+"\nprint()\n")
	option := write("option", "#! "+python+"  -u \n")
	byEnv := write("by-env", "#!/usr/bin/env python3\n")
	split := write("split", "#!/usr/bin/env -S python3 -u\n")
	long := write("long", "#!"+strings.Repeat("/", 300))
	t.Setenv("PATH", dir)
	for _, row := range []struct {
		path    string
		args    []string
		options []string
		argv    []string
		sysArgv []string
		fails   string
	}{
		{path: python, args: []string{"a.py", "-x"}, argv: []string{"a.py", "-x"}, sysArgv: []string{"a.py", "-x"}},
		{path: python, args: []string{"-u", "-W", "error", "-Xdev", "a.py"}, options: []string{"-u", "-W", "error", "-Xdev"}, argv: []string{"a.py"}, sysArgv: []string{"a.py"}},
		{path: python, args: []string{"-m", "mod", "b"}, argv: []string{"-m", "mod", "b"}, sysArgv: []string{"-m", "b"}},
		{path: python, args: []string{"-c", "text", "b"}, argv: []string{"-c", "text", "b"}, sysArgv: []string{"-c", "b"}},
		{path: script, args: []string{"-c"}, argv: []string{script, "-c"}, sysArgv: []string{script, "-c"}},
		{path: option, args: []string{"b"}, options: []string{"-u"}, argv: []string{option, "b"}, sysArgv: []string{option, "b"}},
		{path: byEnv, args: []string{"b"}, argv: []string{byEnv, "b"}, sysArgv: []string{byEnv, "b"}},
		{path: python, fails: "there is no program"},
		{path: python, args: []string{"-"}, fails: "does not run Python with -"},
		{path: python, args: []string{"-um", "mod"}, fails: "does not run Python with -um"},
		{path: python, args: []string{"-i", "a.py"}, fails: "does not run Python with -i"},
		{path: python, args: []string{"-c"}, fails: "-c needs an argument"},
		{path: python, args: []string{"-X"}, fails: "-X needs an argument"},
		{path: split, fails: "only the form"},
		{path: long, fails: "longer than"},
		{path: filepath.Join(dir, "absent"), fails: "no such file"},
	} {
		p, err := readProgram(row.path, append([]string{"name"}, row.args...))
		if row.fails != "" {
			if err == nil || !strings.Contains(err.Error(), row.fails) {
				t.Errorf("%s %q: got %v, want %s", row.path, row.args, err, row.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", row.path, row.args, err)
			continue
		}
		if p.Interpreter != python || !slices.Equal(p.Options, row.options) || !slices.Equal(p.Argv, row.argv) || !slices.Equal(p.sysArgv(), row.sysArgv) {
			t.Errorf("%s %q: got %+v", row.path, row.args, p)
		}
	}
}

// In a cold start, a module beside the program comes before all
// others.
func TestShadowed(t *testing.T) {
	for _, row := range []struct {
		make string
		want string
	}{
		{"torch.py", "torch"}, {"torch.cpython-311-x86_64-linux-gnu.so", "torch"}, {"torch/__init__.py", "torch"}, {"torch/other.py", ""}, {"torch.txt", ""},
		{"torch", ""}, {"other.py", ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, row.make)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := shadowed(dir, []string{"numpy", "torch"}); got != row.want {
			t.Errorf("%s: got %q, want %q", row.make, got, row.want)
		}
	}
}
