package graphir_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"medusa/graphir"
)

var update = flag.Bool("update", false, "rewrite the text dumps in testdata")

// golden reads a file of testdata. -update rewrites text files. Encodings are only ever added, because files of earlier versions
// must stay readable.
func golden(t *testing.T, name string, got []byte, text bool) []byte {
	t.Helper()
	name = "testdata/" + name
	want, err := os.ReadFile(name)
	if *update && (text || errors.Is(err, fs.ErrNotExist)) {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func dump(t *testing.T, s *graphir.Spec) string {
	t.Helper()
	var out strings.Builder
	if err := s.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestGolden(t *testing.T) {
	encoded, err := graphir.Encode(handmade())
	if err != nil {
		t.Fatal(err)
	}
	v1 := golden(t, "v1.graph", encoded, false)
	spec, err := graphir.Decode(v1)
	if err != nil {
		t.Fatalf("version 1 no longer loads: %v", err)
	}
	if !graphir.Equal(spec, handmade()) {
		t.Errorf("version 1 loads as something else:\n%s", dump(t, spec))
	}
	if !bytes.Equal(encoded, v1) {
		t.Errorf("encoding changed: %d bytes instead of %d", len(encoded), len(v1))
	}
	text := dump(t, spec)
	want := golden(t, "v1.txt", []byte(text), true)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("text dump changed (-want +got, -update accepts):\n%s", diff)
	}
}
