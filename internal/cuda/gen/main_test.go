package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed files are the generator's output.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale (run `go generate ./internal/cuda`)", name)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"row", "proce x", "line 1: unknown row"},
		{"shape", "\nproc cuA cuA 1", "line 2: want `proc"},
		{"version", "proc cuA cuA x - (void)", "version of cuA"},
		{"flag", "proc cuA cuA 1 hooked (void)", `unknown flag "hooked"`},
		{"twice", "proc cuA cuA 1 - (void)\nproc cuB cuA 2 - (void)", "line 2: symbol cuA twice"},
		{"order", "proc cuA cuA 2 - (void)\nproc cuA cuA_v2 1 - (void)", "not ordered by version"},
		{"unnamed", "proc cuA cuA 1 - (int)", `parameter "int" of cuA has no name`},
		{"result", "result x y z", "number of y"},
		{"unknown", "bind cuA", "line 1: no proc row of symbol cuA"},
		{"bound twice", "proc cuA cuA 1 - (void)\nbind cuA\nbind cuA A does it.", "line 3: symbol cuA bound twice"},
		{"no text", "proc cuA cuA 1 - (void)\nbind cuA A", "line 2: want `bind symbol`"},
		{"no such entry", "entry cuA", "line 1: no proc row of symbol cuA"},
		{"entry twice", "proc cuA cuA 1 - (void)\nentry cuA\nentry cuA", "line 3: entry cuA twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := parse(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}
