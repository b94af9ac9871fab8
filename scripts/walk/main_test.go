package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One walk with a move of each kind.
func TestMoves(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.24\n",
		"a/a.go": `package a

import "example/b"

func Begin() {
	below()
	b.New()
	table[0].used()
	above()
	below()
}

func above() {}

func below() { deep() }

func deep() {}

type row struct{ used, unused func() }

var table = []row{{used: last, unused: never}}

func never() {}

func last() { b.Call(b.Low) }
`,
		"b/b.go": `package b

func High() {}

func Low() { High() }

func New() {}

func Call(f func()) { f() }
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w, err := load(dir, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.follow("example/a.Begin"); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(w.moves, "\n")
	want := strings.Join([]string{
		"down Begin at a/a.go:6 to below at a/a.go:15",
		"down below at a/a.go:15 to deep at a/a.go:17",
		"on   Begin at a/a.go:7 to New at b/b.go:7",
		"down Begin at a/a.go:8 to table at a/a.go:21",
		"down table at a/a.go:21 to last at a/a.go:25",
		"on   last at a/a.go:25 to Call at b/b.go:9",
		"back last at a/a.go:25 to Low at b/b.go:5",
		"back Low at b/b.go:5 to High at b/b.go:3",
		"back Begin at a/a.go:9 to above at a/a.go:13",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The compiler reads from caller to callee: hardly any move of a run leads back.
func TestTheCompilerIsOneWalk(t *testing.T) {
	w, err := load("../..", []string{"./materialize/compile", "./materialize/recording"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.follow("medusa/materialize/compile.Compile"); err != nil {
		t.Fatal(err)
	}
	if len(w.read) < 100 {
		t.Fatalf("%d functions were read", len(w.read))
	}
	if w.count[back]+w.count[up] <= 5 {
		return
	}
	for _, m := range w.moves {
		if strings.HasPrefix(m, back) || strings.HasPrefix(m, up) {
			t.Error(m)
		}
	}
}
