package materialize

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The first line that reads like an error is found. An exception counts more than a line with the word, and warnings do not count.
func TestFirstError(t *testing.T) {
	for _, row := range []struct {
		name, text, first string
		line              int
	}{
		{"root cause before the last lines", "INFO 0 error handler installed\nERROR engine failed to start\n  File \"x.py\"\nValueError: head size 5\n" +
			strings.Repeat("RuntimeError: Engine core initialization failed. See root cause above.\n", 2), "ValueError: head size 5", 4},
		{"a prefix", "(EngineCore pid=7) ERROR 11-22 [core.py:9] torch.OutOfMemoryError: CUDA out of memory\n", "(EngineCore pid=7) ERROR 11-22 [core.py:9] torch.OutOfMemoryError: CUDA out of memory", 1},
		{"no exception", "loading\nengine: cuMemAlloc failed\nbye\n", "engine: cuMemAlloc failed", 2},
		{"warnings", "WARNING ImportError: no flashinfer\nx.py: DeprecationWarning: error codes\n", "", 0},
		{"Go", "panic: runtime error: index out of range\n", "panic: runtime error: index out of range", 1},
		{"no end of line", "one\nfatal: two", "fatal: two", 2},
		{"a long line", strings.Repeat("x", 5000) + " error\nerror\n", "error", 2},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			o := newOutput(filepath.Join(t.TempDir(), "log"))
			for text := row.text; text != ""; {
				n := min(piece, len(text))
				o.Write([]byte(text[:n]))
				text = text[n:]
			}
			if err := o.close(); err != nil {
				t.Fatal(err)
			}
			if e := o.failed(runRecordA, errors.New("exit status 1")); e.First != row.first || e.Line != row.line {
				t.Errorf("%s, %d bytes at a time: line %d %q, want line %d %q", row.name, piece, e.Line, e.First, row.line, row.first)
			}
			if all, err := os.ReadFile(o.file.Name()); err != nil || string(all) != row.text {
				t.Errorf("%s: the file holds %d bytes of %d (%v)", row.name, len(all), len(row.text), err)
			}
		}
	}
}

// A run that fails leaves all of its output in a file that the message names, and no other file.
func TestOutputIsKept(t *testing.T) {
	e := shell(t, "echo ValueError: the cause; i=0; while [ $i -lt 400 ]; do echo see root cause above; i=$((i+1)); done; exit 3")
	dir := t.TempDir()
	for _, row := range []struct{ path, want string }{
		{filepath.Join(dir, "x.medusa.log"), "all of its output: " + filepath.Join(dir, "x.medusa.log")},
		{filepath.Join(dir, "absent", "x.log"), "its last lines:"},
	} {
		_, err := e.record(t.Context(), runRecordA, "record", placement{}, nil)
		err = keepOutput(err, row.path)
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), " of its output: ValueError: the cause") {
			t.Errorf("%s: %v", row.path, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "x.medusa.log")); err != nil || strings.Count(string(text), "see root cause") != 400 {
		t.Errorf("%d lines are kept (%v), want 400", strings.Count(string(text), "see root cause"), err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left %v", files)
	}
}
