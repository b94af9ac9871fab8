package spill

import (
	"io"
	"os"
	"testing"
)

func TestLeavesNothingBehind(t *testing.T) {
	f := &File{Dir: t.TempDir()}
	if n, err := f.ReadAt(make([]byte, 1), 0); n != 0 || err != io.EOF {
		t.Errorf("read of nothing: %d %v", n, err)
	}
	for off, text := range map[int64]string{0: "one", 3: "two"} {
		if _, err := f.WriteAt([]byte(text), off); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 6)
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != "onetwo" || f.End() != 6 {
		t.Errorf("%q, end %d: %v", got, f.End(), err)
	}
	if names, err := os.ReadDir(f.Dir); err != nil || len(names) != 0 {
		t.Errorf("a name is left: %v %v", names, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := (&File{Dir: f.Dir + "/missing"}).WriteAt([]byte{1}, 0); err == nil {
		t.Error("a missing folder goes unnoticed")
	}
}
