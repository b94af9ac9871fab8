package compile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// No driver hands out memory that wraps around the address space, or lies inside of other memory. A word that is the same in
// both runs would be taken for a constant there.
func TestImpossibleAllocations(t *testing.T) {
	const same = 0x7e8000000000 // in the memory of both runs
	for _, tt := range []struct {
		name  string
		run   func(tp *tape)
		order uint64 // of the record that is refused
		want  string
	}{
		{"wrapping", func(tp *tape) {
			tp.alloc(same-uint64(tp.seed)*4096, 1<<20)
			tp.alloc(math.MaxUint64-4095, 8192)
		}, 6, "8192 bytes at 0xfffffffffffff000 wrap around"},
		{"a variable that wraps", func(tp *tape) {
			tp.alloc(same-uint64(tp.seed)*4096, 1<<20)
			tp.add(&trace.Global{Module: 0, Name: "v", Addr: math.MaxUint64, Size: 2})
		}, 6, "2 bytes at 0xffffffffffffffff wrap around"},
		{"two inside of a third", func(tp *tape) {
			at := same - uint64(tp.seed)<<20
			tp.alloc(at, 64<<20)
			tp.alloc(at+4096, 64)
			tp.alloc(at+8192, 64)
		}, 6, "alloc#1 lies in alloc#0"},
		{"a variable in an allocation", func(tp *tape) {
			at := same - uint64(tp.seed)<<20
			tp.alloc(at, 64<<20)
			tp.add(&trace.Global{Module: 0, Name: "v", Addr: at + 4096, Size: 8}, &trace.Global{Module: 0, Name: "w", Addr: at + 8192, Size: 8})
		}, 0, "lies in alloc#0"},
		{"a variable in another", func(tp *tape) {
			at := same - uint64(tp.seed)<<20
			tp.add(&trace.Global{Module: 0, Name: "v", Addr: at, Size: 64 << 20}, &trace.Global{Module: 0, Name: "w", Addr: at + 4096, Size: 8},
				&trace.Global{Module: 0, Name: "x", Addr: at + 8192, Size: 8})
		}, 0, "lies in global#0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			compile := func() (*graphir.Spec, error) {
				var runs [2]*recording.Recording
				for i, seed := range []byte{1, 2} {
					tp := newTape(seed)
					tp.function(0, trace.ModuleModule, "k", 8)
					tt.run(tp)
					tp.phase("capture")
					tp.capture("g", 1, tp.kernel(0, same))
					tp.phase("ready")
					var err error
					if runs[i], err = recording.Read(tp.file(t, true)); err != nil {
						return nil, err
					}
				}
				return proven(runs[0], runs[1])
			}
			spec, err := compile()
			var bad *recording.Error
			if !errors.As(err, &bad) || !strings.Contains(bad.Reason, tt.want) || bad.Path == "" || tt.order != 0 && bad.Order != tt.order {
				t.Errorf("got %v, want a recording refused with %q at record %d", err, tt.want, tt.order)
			}
			if err == nil {
				t.Errorf("the word became %x with pointers %v", onlyKernel(spec).Params, onlyKernel(spec).Relocations)
			}
		})
	}
}

// Another name of the same variable, and memory of another process that was opened twice, share their address.
func TestMemoryWithTwoNames(t *testing.T) {
	spec := mustCompile(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		tp.alloc(at(0), 4096)
		tp.add(&trace.Global{Module: 0, Name: "v", Addr: at(1), Size: 8}, &trace.Global{Module: 0, Name: "alias", Addr: at(1), Size: 8})
		for range 2 {
			tp.alloc(at(2), 4096)
			tp.recs[len(tp.recs)-1].(*trace.Alloc).Kind = trace.AllocIPC
		}
		tp.phase("capture")
		tp.capture("g", 1, tp.kernel(0, at(0)), tp.kernel(0, at(1)))
		tp.phase("ready")
	})
	if to := spec.Graphs[0].Nodes[1].Kernel().Relocations; len(to) != 1 || to[0].Pointer.Space != graphir.SpaceGlobal {
		t.Errorf("pointers %v, want one to the variable", to)
	}
}

// The layout does not describe bytes that a launch passes outside of its function's parameters: an address there would stay
// as it was.
func TestParametersOutsideOfTheLayout(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sizes []uint32 // of the function's parameters
		words func(at place, seed uint64) []uint64
		want  string // "" if it compiles
	}{
		{"no layout", nil, func(at place, _ uint64) []uint64 { return []uint64{at(0)} }, "bytes 0 to 8 of its 8"},
		{"behind the last", []uint32{8}, func(at place, _ uint64) []uint64 { return []uint64{at(0), 5, at(0) + 64} }, "bytes 16 to 24 of its 24"},
		{"between two", []uint32{4, 1 << 31, 8}, func(at place, _ uint64) []uint64 { return []uint64{7, at(0), at(0)} }, "bytes 8 to 16 of its 24"},
		{"differs", nil, func(_ place, seed uint64) []uint64 { return []uint64{seed} }, "bytes 0 to 8 of its 8"},
		{"may be an address", nil, func(place, uint64) []uint64 { return []uint64{placeA(0) + 64} }, "bytes 0 to 8 of its 8"},
		{"constants", []uint32{8}, func(at place, _ uint64) []uint64 { return []uint64{at(0), 5, 0} }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec, err := compilePair(t, func(tp *tape, at place) {
				tp.function(0, trace.ModuleModule, "nolayout", tt.sizes...)
				if len(tt.sizes) == 3 { // a gap in place of the second
					f := tp.recs[len(tp.recs)-1].(*trace.Function)
					f.Params = []trace.FunctionParam{f.Params[0], {Offset: 16, Size: 8}}
				}
				tp.alloc(at(0), 4096)
				tp.phase("capture")
				tp.capture("g", 1, tp.kernel(0, tt.words(at, uint64(tp.seed))...))
				tp.phase("ready")
			})
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tt.want) {
				t.Errorf("got %v, want a refusal of %q", err, tt.want)
			}
			if err == nil {
				t.Errorf("the launch became %x with pointers %v", onlyKernel(spec).Params, onlyKernel(spec).Relocations)
			} else if want := `graph "g": node 0 (kernel nolayout): `; !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %s", err, want)
			}
		})
	}
}

// Offsets beyond 32 bits: of pointers in parameters, in node parameters and in contents, and of the contents themselves.
func TestOffsetsBeyond4GiB(t *testing.T) {
	const far = 5<<30 + 24
	far0 := func(at place) uint64 { return at(0) * 4 } // 192 GiB apart
	spec := mustCompile(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		tp.alloc(far0(at), 8<<30)
		tp.phase("capture")
		tp.alloc(far0(at)+1<<36, 8<<30)
		tp.capture("g", 1, tp.kernel(0, far0(at)+far), &trace.Memset{Graph: tp.graph, Node: 1, Dst: far0(at) + 1<<36 + far, ElemSize: 1, Width: 1, Height: 1})
		tp.phase("ready")
		tp.add(&trace.Content{Alloc: 1, Offset: far, Data: binary.LittleEndian.AppendUint64(nil, far0(at)+far+8)})
	})
	data, err := graphir.Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	if spec, err = graphir.Decode(data); err != nil {
		t.Fatal(err)
	}
	nodes, c := spec.Graphs[0].Nodes, spec.Contents[0]
	if f := nodes[0].Kernel().Relocations[0]; f.Pointer != (graphir.Pointer{Offset: far}) {
		t.Errorf("the kernel's pointer leads to %v", f.Pointer)
	}
	if p := nodes[1].Memset().Dst; p != (graphir.Pointer{Index: 1, Offset: far}) {
		t.Errorf("the memset's leads to %v", p)
	}
	if c.Alloc != 1 || c.Offset != far || len(c.Relocations) != 1 || c.Relocations[0].Pointer != (graphir.Pointer{Offset: far + 8}) {
		t.Errorf("saved %v+%d, pointers %v", c.Alloc, c.Offset, c.Relocations)
	}
}

// A large buffer is saved in pieces, so that offsets in one fit 32 bits. No pointer and no tensor map is cut.
func TestLargeBuffersAreSavedInPieces(t *testing.T) {
	if maxContent > math.MaxUint32/2 {
		t.Fatalf("pieces of up to %d bytes", uint64(maxContent))
	}
	const at, size = 192, 1024 // of the saved bytes in their buffer
	var data [2][]byte
	var runs [2]*recording.Recording
	for i, place := range []place{placeA, placeB} {
		tp := newTape(byte(1 + i))
		tp.alloc(place(0), 4096)
		tp.phase("ready")
		data[i] = make([]byte, size)
		for o := 0; o < size; o += 8 {
			word := place(0) + uint64(o) // most are pointers
			switch {
			case o%128 == 8:
				word = uint64(i) + 1 // unstable
			case o%128 >= 16 && o%128 < 64:
				word = uint64(o)
			}
			binary.LittleEndian.PutUint64(data[i][o:], word)
		}
		copy(data[i][192:], bytes.Repeat([]byte{0xa0 | byte(i)}, graphir.TensorMapBytes))
		tp.add(&trace.TensorMap{Map: data[i][192 : 192+graphir.TensorMapBytes], Tiled: 1, Addr: place(0) + 512, Dim: []uint64{4}, Box: []uint32{4}, Steps: []uint32{1}})
		runs[i] = tp.recording(t)
	}
	live := [2]*liveSet{}
	for i, r := range runs {
		var err error
		if live[i], err = own(r).liveAt(r.ReadyOrder); err != nil {
			t.Fatal(err)
		}
	}
	for _, cut := range []uint64{8, 72, 100, 208, 256, 1000, 1024, 4096} {
		p := newProver(live[0], live[1], &tensorMaps{runs[0].TensorMaps, runs[1].TensorMaps, &graphir.Spec{}})
		p.cut = cut
		pieces, err := p.content(&piece{alloc: 0, offset: at}, bytes.Clone(data[0]), data[1])
		if err != nil {
			t.Fatal(err)
		}
		back := bytes.Clone(data[0])
		next, maps := uint64(at), 0
		for _, c := range pieces {
			if c.Offset != next || uint64(len(c.Data)) > cut+graphir.TensorMapBytes {
				t.Fatalf("cut %d: %d bytes at %d, want them at %d", cut, len(c.Data), c.Offset, next)
			}
			from := c.Offset - at
			want := back[from:][:len(c.Data)]
			next += uint64(len(c.Data))
			for _, f := range c.Relocations {
				if f.TensorMap != 0 {
					maps++
					copy(c.Data[f.Offset:], data[0][192:192+graphir.TensorMapBytes])
					if f.Pointer.Offset != 512 {
						t.Errorf("cut %d: a map over %v", cut, f.Pointer)
					}
					continue
				}
				binary.LittleEndian.PutUint64(c.Data[f.Offset:], placeA(0)+f.Pointer.Offset)
			}
			for _, u := range c.Unstable {
				copy(c.Data[u.Offset:u.Offset+u.Size], want[u.Offset:])
			}
			if !slices.Equal(c.Data, want) {
				t.Errorf("cut %d: bytes from %d on are %x, were %x", cut, from, c.Data, want)
			}
		}
		if next != at+size || maps != 1 {
			t.Errorf("cut %d: saved up to %d, %d maps", cut, next, maps)
		}
	}
}
