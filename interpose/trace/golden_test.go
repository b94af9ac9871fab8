package trace

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the text in testdata, and write missing traces")

// A trace of version 1 with one record of each kind still reads the same. -update rewrites its text, for fields that were added
// later; the trace itself is never written again.
func TestGoldenVersion1(t *testing.T) {
	path, text := filepath.Join("testdata", "v1.trace"), filepath.Join("testdata", "v1.txt")
	if _, err := os.Stat(path); *update && errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, encode(t, oneOfEach()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := ReadAll(path)
	if err != nil {
		t.Fatalf("version 1 no longer reads: %v", err)
	}
	var got strings.Builder
	for _, r := range all {
		fmt.Fprintf(&got, "%T %+v\n", r, r)
	}
	if *update {
		if err := os.WriteFile(text, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("version 1 reads as\n%s, want\n%s", got.String(), want)
	}
}
