package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func wheel(t *testing.T, path string, files map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Wheels become one folder, whatever an earlier call left there; packages may share a folder and files that are equal.
func TestUnpack(t *testing.T) {
	wheels, site := t.TempDir(), filepath.Join(t.TempDir(), "site")
	if err := unpack(wheels, site); err == nil || !strings.Contains(err.Error(), "no wheels") {
		t.Errorf("no wheels: %v", err)
	}
	wheel(t, filepath.Join(wheels, "a-1-py3-none-any.whl"), map[string]string{"shared/__init__.py": "", "shared/a.py": "a = 1", "a-1.dist-info/METADATA": "Name: a"})
	wheel(t, filepath.Join(wheels, "b-1-cp312-cp312-manylinux2014_x86_64.whl"), map[string]string{"shared/__init__.py": "", "shared/b.so": "b"})
	if err := os.MkdirAll(filepath.Join(site, "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unpack(wheels, site); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"shared/a.py": "a = 1", "shared/b.so": "b", "shared/__init__.py": "", "a-1.dist-info/METADATA": "Name: a"} {
		if got, err := os.ReadFile(filepath.Join(site, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(site, "old")); err == nil {
		t.Error("what an earlier call left is still there")
	}
	if err := os.WriteFile(filepath.Join(wheels, "c-1-py3-none-any.whl"), []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unpack(wheels, site); err == nil || !strings.Contains(err.Error(), "c-1-py3-none-any.whl") {
		t.Errorf("a damaged wheel: %v", err)
	}
}

// Ranks report in any order, and each of them does.
func TestParseRanks(t *testing.T) {
	const zero, one = `{"rank": 0, "start": "native", "graphs": 3}`, `{"rank": 1, "start": "native", "graphs": 3}`
	found, err := parseRanks("other\n" + one + "\n" + zero + "\n")
	if err != nil || len(found) != 2 || found[0].Rank != 0 || found[1].Rank != 1 || found[1].Graphs != 3 {
		t.Errorf("%+v, %v", found, err)
	}
	for _, out := range []string{"", zero, zero + "\n" + one + "\n" + one, zero + "\n{"} {
		if found, err := parseRanks(out); err == nil {
			t.Errorf("%q: %+v", out, found)
		}
	}
}

func TestAnswers(t *testing.T) {
	const loads = "load begin 0.1 0\nload capture 1.5 6\n"
	for _, c := range []struct {
		name, out, fault string
		rows             []Row
	}{
		{"both kinds", loads + "node 0 function none gemm\nnode 1 none kernel norm\nnode 4 function none silu\n", "", []Row{
			{"modules loaded until begin", "0 after 0.1 s"}, {"modules loaded until capture", "6 after 1.5 s"},
			{"kernel nodes with func function, kern none", "2 of 3"}, {"kernel nodes with func none, kern kernel", "1 of 3"}}},
		{"a kernel without a name", loads + "node 0 function none gemm\nnode 7 nameless none -\n", "names no kernel for nodes 7", nil},
		{"no nodes", loads, "were not told", nil},
		{"no loads", "node 0 function none gemm\n", "were not told", nil},
	} {
		a := &Attempt{Kit: newKit(t)}
		err := answers(a, c.out)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", c.name, err, c.fault)
		}
		for i, want := range c.rows {
			if i >= len(a.rows) || a.rows[i] != want {
				t.Errorf("%s: rows %v, want %v", c.name, a.rows, c.rows)
				break
			}
		}
	}
}

func TestRefusal(t *testing.T) {
	const text = "[1/6] profile\nmedusa: verify graph moe: its native replays differ\nengine: bye\n"
	if got := refusal(text); got != "verify graph moe: its native replays differ" {
		t.Errorf("got %q", got)
	}
	if got := refusal("one\ntwo\n"); got != "two" {
		t.Errorf("got %q", got)
	}
}
