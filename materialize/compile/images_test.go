package compile

import (
	"crypto/sha256"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

const (
	plainPTX = ".version 8.0\n.target sm_80\n.visible .entry k(.param .u64 p) { ret; }\n"
	statePTX = ".version 8.0\n.target sm_80\n.global .u32 counter;\n.const .u32 table[4];\n.visible .entry k(.param .u64 p) { ret; }\n"
)

// Modules that may be reloaded, and images that are embedded.
func TestCompileImages(t *testing.T) {
	contents := func(unstable ...graphir.Range) func(s *graphir.Spec) {
		return func(s *graphir.Spec) {
			s.Globals = []graphir.Global{{Module: 0, Name: "counter", Size: 4}}
			s.Contents = []graphir.Content{{Space: graphir.SpaceGlobal, Data: make([]byte, 4), Unstable: unstable}}
		}
	}
	tests := []struct {
		name     string
		image    string
		early    bool
		options  uint32
		dso      string
		all      bool
		prepare  func(s *graphir.Spec)
		reload   bool
		embedded int
	}{
		{name: "late, in no shared object", image: plainPTX, reload: true, embedded: 1},
		{name: "loaded by the engine's own start", image: plainPTX, early: true, reload: true},
		{name: "in a shared object", image: plainPTX, dso: "/lib/a.so", reload: true},
		{name: "in a shared object, asked for", image: plainPTX, dso: "/lib/a.so", all: true, reload: true, embedded: 1},
		{name: "early, asked for", image: plainPTX, early: true, dso: "/lib/a.so", all: true, reload: true},
		{name: "options that change code", image: plainPTX, options: 1},
		{name: "not understood", image: "\x7fELF and no more"},
		{name: "a variable that kernels can write", image: statePTX},
		{name: "the same, its contents known", image: statePTX, prepare: contents(), reload: true, embedded: 1},
		{name: "the same, its contents differ from run to run", image: statePTX, prepare: contents(graphir.Range{Offset: 0, Size: 4})},
		{name: "a variable that the host asked for", image: plainPTX,
			prepare: func(s *graphir.Spec) { s.Globals = []graphir.Global{{Module: 0, Name: "table", Size: 64}} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sum := sha256.Sum256([]byte(tt.image))
			load := []trace.Record{&trace.Image{SHA256: sum[:], Data: []byte(tt.image)},
				&trace.Module{Kind: trace.ModuleModule, SHA256: sum[:], ImageSize: uint64(len(tt.image)), DSO: tt.dso, Options: tt.options}}
			tp := newTape(1)
			if tt.early {
				tp.add(load...)
			}
			tp.phase("warmup")
			if !tt.early {
				tp.add(load...)
			}
			tp.phase("ready")
			spec := &graphir.Spec{Modules: []graphir.Module{
				{Kind: graphir.ModuleLoaded, ImageSHA256: sum, ImageSize: uint64(len(tt.image)), DSO: recording.BaseName(tt.dso)},
				{Kind: graphir.ModuleHidden},
			}}
			if tt.prepare != nil {
				tt.prepare(spec)
			}
			if err := Images(tp.recording(t), spec, tt.all); err != nil {
				t.Fatal(err)
			}
			if got := spec.Modules[0].Reload; got != tt.reload || spec.Modules[1].Reload {
				t.Errorf("reload %v, want %v", got, tt.reload)
			}
			if len(spec.Images) != tt.embedded {
				t.Errorf("%d images embedded, want %d", len(spec.Images), tt.embedded)
			}
		})
	}
}

// Only memory whose place repeats gets an address.
func TestAddressesOfTheRegion(t *testing.T) {
	const base = 0x1200_0000_0000
	run := func(tp *tape, at place) {
		lie := at
		if tp.seed == 1 {
			tp.add(&trace.Exact{Base: base, Size: 1 << 40})
			lie = func(i int) uint64 { return base + uint64(i)<<20 }
		}
		tp.alloc(lie(0), 4096)
		tp.alloc(at(1), 4096)
		tp.add(&trace.Alloc{ID: 2, Kind: trace.AllocAsync, Addr: lie(3), Size: 64})
		tp.phase("ready")
	}
	spec := mustCompile(t, run)
	if spec.Region != (graphir.Region{Base: base, Size: 1 << 40}) {
		t.Errorf("region %+v", spec.Region)
	}
	for i, want := range []uint64{base, 0, 0} {
		if got := spec.Allocations[i].Address; got != want {
			t.Errorf("allocation %d: address %#x, want %#x", i, got, want)
		}
	}
}
