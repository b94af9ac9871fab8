package interpose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// story lists the allocations, frees and faults of a trace as text.
func story(recs []trace.Record) []string {
	var out []string
	for _, rec := range recs {
		switch rec := rec.(type) {
		case *trace.Alloc:
			out = append(out, fmt.Sprintf("alloc %d %s %d", rec.ID, rec.Kind, rec.Size))
		case *trace.Free:
			out = append(out, fmt.Sprintf("free %d %s", rec.ID, rec.Kind))
		case *trace.Fault:
			out = append(out, "fault "+rec.Call)
		case *trace.Content:
			out = append(out, fmt.Sprintf("content %d", rec.Alloc))
		}
	}
	return out
}

func TestRareMemoryCalls(t *testing.T) {
	for _, c := range []struct {
		what string
		want []string
	}{
		{"refused", []string{"alloc 0 device 13", "alloc 1 device 14", "free 0 device", "fault cuMemFree", "free 1 device", "content 0"}},
		{"unmap", []string{"alloc 0 vmm 2097152", "alloc 1 vmm 4194304", "free 0 vmm", "free 1 vmm"}},
		{"ipc", []string{"alloc 0 ipc 12345", "free 0 ipc"}},
		{"ipc-first-form", []string{"alloc 0 ipc 12345", "free 0 ipc"}},
		{"ipc-twice", []string{"alloc 0 ipc 12345", "alloc 1 device 14", "free 0 ipc", "content 1"}},
		{"context", []string{"alloc 0 device 100", "free 0 device"}},
	} {
		recs, _ := recordWithFaults(t, Config{}, 0, fakeDir(t), build(t, "build/test/plumbing"), c.what)
		if got := story(recs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// The header of each container gives the end of its image.
func TestImagesInEveryContainer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(file, []byte("text in a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	recs, _ := record(t, Config{}, 0, fakeDir(t), build(t, "build/test/plumbing"), "images", file)
	var sizes []int
	var starts []string
	for _, im := range of[*trace.Image](recs) {
		sizes = append(sizes, len(im.Data))
		starts = append(starts, strings.TrimRight(string(im.Data[:4]), "\x00"))
	}
	// The wrapper leads to the same container as the load before, and the two texts are equal: one image each. One text is known
	// by its place, so it has no image.
	if want := []int{4, 56, 292, 14}; !slices.Equal(sizes, want) {
		t.Errorf("images of %v bytes, want %v", sizes, want)
	}
	if want := []string{"text", "\x50\xed\x55\xba", "\x7fELF", "text"}; !slices.Equal(starts, want) {
		t.Errorf("images begin with %q", starts)
	}
	modules := of[*trace.Module](recs)
	if len(modules) != 7 || modules[3].ImageSize != 56 || modules[4].Kind != trace.ModuleLibrary || string(modules[4].SHA256) != string(modules[3].SHA256) ||
		string(modules[1].SHA256) != string(modules[0].SHA256) {
		t.Fatalf("modules %+v", modules)
	}
	if m := modules[2]; len(m.SHA256) != 0 || m.BuildID == "" || m.ImageSize != 19 || !strings.HasPrefix(readFile(t, m.DSO)[m.DSOOffset:], "text of the program") {
		t.Errorf("a text of the program: %+v", m)
	}
	if m := modules[3]; len(m.SHA256) != 32 || !strings.HasSuffix(m.DSO, "/plumbing") {
		t.Errorf("an image that the program can write is known by its place: %+v", m)
	}
	if modules[6].DSO != "" || modules[6].BuildID != "" {
		t.Errorf("a module from a file lies in %q", modules[6].DSO)
	}
}
