package recording

import (
	"bytes"
	"os"
	"testing"

	"medusa/interpose/trace"
	"medusa/test/testenv"
)

// An image is read at its place only from the build that was recorded.
func TestImageInObject(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testenv.Build(t, "lib")
	f, err := os.Open("../../build/lib/libmedusa_interpose.so")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := buildID(f)
	if err != nil || len(id) < 32 {
		t.Fatalf("build-id %q: %v", id, err)
	}
	m := &Module{Module: &trace.Module{DSO: f.Name(), BuildID: id, DSOOffset: 16, ImageSize: 64}}
	want := make([]byte, 64)
	if _, err := f.ReadAt(want, 16); err != nil {
		t.Fatal(err)
	}
	if got, err := imageInObject(m); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	for name, change := range map[string]func(m *trace.Module){
		"another build":         func(m *trace.Module) { m.BuildID = "00" + id[2:] },
		"another file":          func(m *trace.Module) { m.DSO = program },
		"no file":               func(m *trace.Module) { m.DSO = "/nowhere" },
		"no object":             func(m *trace.Module) { m.DSO = "object.go" },
		"beyond the file's end": func(m *trace.Module) { m.DSOOffset = 1 << 40 },
	} {
		other := *m.Module
		change(&other)
		if _, err := imageInObject(&Module{Module: &other}); err == nil {
			t.Errorf("%s: an image was read", name)
		}
	}
}
