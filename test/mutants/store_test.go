package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a repository of two packages, a plug-in and a program in C.
var small = map[string]string{
	"go.mod":                  "module x\n\ngo 1.23\n",
	"a/a.go":                  "package a\n\nimport \"x/b\"\n\nfunc A() int { return b.B() }\n",
	"a/a_test.go":             "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { if A() != 1 { t.Error(1) } }\n",
	"a/testdata/x.txt":        "x",
	"b/b.go":                  "package b\n\nfunc B() int {\n\t// mutant: b\n\treturn 1\n}\n",
	"b/b_test.go":             "package b\n",
	"c/c.go":                  "package c\n",
	"c/c_test.go":             "package c\n",
	"runners/torch/plugin.py": "x = 1\n",
	"docs/result.json":        "{}",
	"runners/vllm/plugin.py":  "x = 1\n",
	"simgpu/test/x_test.c":    "int x;\n",
	"README.md":               "x\n",
	self + "main.go":          "package main\n\nfunc main() {}\n",
	self + "rows.go":          "package main\n\nvar rows = []mutant{{}}\n\nfunc row() mutant { return mutant{} }\n",
	self + "main_test.go":     "package main\n",
}

// repository writes files, and reads them as a run does.
func repository(t *testing.T, files map[string]string) *inputs {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := exec.Command("git", "init", "-q")
	git.Dir = dir
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	in, err := readInputs(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Which of a row's keys an edit changes: of its test's packages, of all that is built without and with plug-ins, of everything.
func TestKeys(t *testing.T) {
	rows := []*mutant{
		{"b", replace("1", "2"), "./a", "TestA"},
		{"b", replace("1", "2"), "./runners/vllm/test_plugin.py", "A.test_a"},
		{"b", replace("1", "2"), "./simgpu/test/x_test.c", "test_x"},
	}
	keys := func(files map[string]string) (all [][]string) {
		in := repository(t, files)
		for _, m := range rows {
			scopes, err := in.scopes(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, s := range scopes {
				keys = append(keys, s.key(m))
			}
			all = append(all, keys)
		}
		return all
	}
	before := keys(small)
	for _, c := range []struct{ edited, text, changed string }{
		{"README.md", "y\n", "0001 0001 0001"},
		{"a/a.go", small["a/a.go"] + "\n", "1111 0111 0111"},
		{"a/a_test.go", "package a\n", "1111 0001 0001"},
		{"a/testdata/x.txt", "y", "1111 0111 1111"},
		{"b/b.go", "package b\n\nfunc B() int { return 2 }\n", "1111 0111 0111"},
		{"b/b_test.go", "package b\n\n", "0001 0001 0001"},
		{"b/new.go", "package b\n", "1111 0111 0111"},
		{"c/c.go", "package c\n\n", "0111 0111 0111"},
		{"c/c_test.go", "package c\n\n", "0001 0001 0001"},
		{"go.sum", "\n", "1111 0111 1111"},
		{"runners/torch/plugin.py", "x = 2\n", "0111 0111 0111"},
		{"docs/result.json", "[]", "0011 0011 0011"},
		{"runners/vllm/plugin.py", "x = 2\n", "0011 1011 0011"},
		{"simgpu/test/x_test.c", "int y;\n", "0111 0111 1111"},
		{self + "main.go", "package main\n\nfunc main() { main() }\n", "1111 1111 1111"},
		{self + "rows.go", small[self+"rows.go"] + "\nvar more = []mutant{{}}\n", "0001 0001 0001"},
		{self + "rows.go", "package main\n\nvar limit = 1\n", "1111 1111 1111"},
		{self + "main_test.go", "package main\n\n", "0001 0001 0001"},
	} {
		files := maps.Clone(small)
		files[c.edited] = c.text
		var changed []string
		for i, after := range keys(files) {
			text := ""
			for j := range after {
				text += map[bool]string{false: "0", true: "1"}[after[j] != before[i][j]]
			}
			changed = append(changed, text)
		}
		if got := strings.Join(changed, " "); got != c.changed {
			t.Errorf("%s: keys that change are %s, want %s", c.edited, got, c.changed)
		}
	}
	in := repository(t, small)
	scopes, err := in.scopes(t.Context(), rows[0])
	if err != nil {
		t.Fatal(err)
	}
	other := *rows[0]
	other.Change = replace("1", "3")
	if scopes[0].key(rows[0]) == scopes[0].key(&other) {
		t.Error("another change has the same key")
	}
	in.tools += "another compiler"
	if scopes[0].key(rows[0]) == before[0][0] {
		t.Error("another compiler has the same key")
	}
}

// A tree has the files of its scope and no other, so a test that needs more does not pass in it.
func TestTreeHasWhatTheKeyHas(t *testing.T) {
	in := repository(t, small)
	m := &mutant{"b", replace("1", "2"), "./a", "TestA"}
	scopes, err := in.scopes(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	copies, err := newTrees(in)
	if err != nil {
		t.Fatal(err)
	}
	defer copies.remove()
	tree := copies.small
	for _, s := range []*scope{scopes[len(scopes)-1], scopes[0]} {
		if err := tree.become(t.Context(), s.files); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := filepath.WalkDir(tree.dir, func(path string, d os.DirEntry, err error) error {
			if name, _ := filepath.Rel(tree.dir, path); err == nil && !d.IsDir() {
				got = append(got, name)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if !slices.Equal(got, s.files) {
			t.Errorf("the tree has %q, want %q", got, s.files)
		}
	}
	v, err := tree.with("b/b.go", []byte("package b\n\nfunc B() int { return 2 }\n"), func() (verdict, error) {
		return runTest(t.Context(), tree.dir, m.Package, m.Test)
	})
	if v != caught || err != nil {
		t.Errorf("%s, %v", v, err)
	}
	if data, err := os.ReadFile(filepath.Join(tree.dir, "b/b.go")); err != nil || string(data) != small["b/b.go"] {
		t.Errorf("the file stays changed: %q, %v", data, err)
	}
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "results.json")
	open := func(commit string, forget bool) *store {
		s, err := openStore(path, commit, forget)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open("c1", false)
	for row, v := range map[string]verdict{"caught": caught, "crashed": crashed, "missed": missed, "timed out": timedOut} {
		if err := first.put(row, "key", v); err != nil {
			t.Fatal(err)
		}
	}
	later := open("c2", false)
	for _, c := range []struct {
		row  string
		keys []string
		want verdict
	}{
		{"caught", []string{"other", "key"}, caught},
		{"caught", []string{"other"}, ""},
		{"crashed", []string{"key"}, crashed},
		{"missed", []string{"key"}, ""},
		{"timed out", []string{"key"}, ""},
		{"new", []string{"key"}, ""},
	} {
		if v, ok := later.take(c.row, c.keys...); v != c.want || ok != (c.want != "") {
			t.Errorf("%s %q: %q, want %q", c.row, c.keys, v, c.want)
		}
	}
	if got, want := later.summary(7), "mutants: 5 tried at c2, 2 taken from "+path+" (c1 2)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := later.put("caught", "key", missed); err != nil {
		t.Fatal(err)
	}
	if _, ok := open("c3", false).take("caught", "key"); ok {
		t.Error("a verdict stays that is true no more")
	}
	one, other := open("c3", false), open("c3", false)
	if err := errors.Join(one.put("of one", "key", caught), other.put("of another", "key", caught)); err != nil {
		t.Fatal(err)
	}
	if _, ok := open("c3", false).take("of one", "key"); !ok {
		t.Error("a run that goes on at the same time wrote over a verdict")
	}
	if _, ok := open("c3", true).take("crashed", "key"); ok {
		t.Error("the store was not forgotten")
	}
	if err := os.WriteFile(path, []byte(`{"half": `), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := open("c3", false).take("half", "key"); ok {
		t.Error("half a file is a store")
	}
}

// The files of tables count by their rows; no other file of this program does.
func TestOnlyRows(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tables := []string{"attack.go", "interpreter.go", "large.go", "nodes.go", "pool.go", "ranks.go", "serving.go", "shipping.go", "skeptic.go", "table.go", "torch.go"}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := onlyRows(source); err != nil || got != slices.Contains(tables, name) {
			t.Errorf("%s: only rows: %v, %v", name, got, err)
		}
	}
	for text, want := range map[string]bool{
		"var a = []mutant{}":                      true,
		"var a = []string{}":                      false,
		"var a mutant":                            false,
		"const a = 1":                             false,
		"func a() mutant { return mutant{} }":     true,
		"func (m mutant) a() mutant { return m }": false,
		"func a() {}":                             false,
		"type a struct{}":                         false,
		"import \"os\"":                           false,
	} {
		if got, err := onlyRows([]byte("package main\n\n" + text + "\n")); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}
