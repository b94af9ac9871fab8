package compile

import (
	"reflect"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// Memory that no block owns at ready, and memory that was free before blocks of the capture phase: by the last mark of each byte.
func TestVacantMemory(t *testing.T) {
	const kib = 1024
	for _, tt := range []struct {
		name  string
		named bool // it leads into a tensor
		want  []graphir.Vacancy
	}{
		{"places count", false, []graphir.Vacancy{
			{Alloc: 1, Offset: 1 * kib, Size: kib}, {Alloc: 1, Offset: 2 * kib, Size: kib, Taken: true}, {Alloc: 1, Offset: 3 * kib, Size: kib},
			{Alloc: 1, Offset: 4 * kib, Size: kib, Taken: true}, {Alloc: 1, Offset: 5 * kib, Size: 2 * kib}}},
		{"tensors alone count", true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var runs [2]*recording.Recording
			for i, at := range []place{placeA, placeB} {
				tp, base := newTape(byte(i+1)), at(0)+uint64(i)*0x800
				mark := func(from, size uint64, live uint8) {
					tp.add(&trace.Block{Addr: base + from*kib, Size: size * kib, Live: live})
				}
				tp.function(0, trace.ModuleModule, "k", 8)
				tp.alloc(base, 8*kib)
				mark(7, 1, 0) // of memory that was there before
				tp.free(0)
				tp.alloc(base, 8*kib)
				mark(0, 1, 1)
				mark(1, 1, 1)
				mark(2, 1, 1)
				mark(2, 5, 0) // given back, as one block with the memory behind it
				if tt.named {
					tp.add(&trace.Tensor{Name: "w", Addr: base, Size: 512, Role: 1, Dtype: 6})
				}
				tp.phase("capture")
				tp.capture("g", 1, tp.kernel(0, base))
				mark(1, 1, 0)
				mark(2, 1, 1)
				mark(3, 4, 0)
				if i == 1 {
					mark(4, 1, 1)
				}
				tp.phase("ready")
				mark(0, 8, 0)
				runs[i] = tp.recording(t)
			}
			spec, _, err := Compile(runs[0], runs[1], nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(spec.Vacant, tt.want) {
				t.Errorf("vacant %+v, want %+v", spec.Vacant, tt.want)
			}
		})
	}
}
