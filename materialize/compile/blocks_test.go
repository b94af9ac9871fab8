package compile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// A framework's allocator divides allocation 0: a named tensor, a block without a name, a block that was free.
func TestPointersIntoAFrameworksBlocks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		offset uint64
		mark   bool
		moved  bool // record-b has another block map
		reason string
	}{
		{"named tensor", 512, true, true, ""},
		{"no named tensor", 1024, true, false, ""},
		{"no named tensor, another map", 1024, true, true, "no named tensor"},
		{"free block", 2048, true, false, "free when the capture phase began"},
		{"an engine without an allocator of its own", 1024, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compilePair(t, func(tp *tape, at place) {
				tp.function(0, trace.ModuleModule, "k", 8)
				tp.alloc(at(0), 4096)
				tp.add(&trace.Tensor{Name: "w", Addr: at(0) + 512, Size: 512, Role: 1, Dtype: 6})
				if tt.mark {
					for i, live := range []uint8{1, 1, 0} {
						tp.add(&trace.Block{Addr: at(0) + uint64(i)*1024, Size: 1024, Live: live})
					}
				}
				if tt.moved && tp.seed != 1 {
					tp.add(&trace.Block{Addr: at(0) + 3072, Size: 1024})
				}
				tp.phase("warmup")
				if tt.mark {
					tp.add(&trace.Block{Addr: at(0) + 2048, Size: 1024, Live: 1}) // later: not there when the phase began
				}
				tp.phase("capture")
				tp.capture("g", 1, tp.kernel(0, at(0)+tt.offset))
				tp.phase("ready")
			})
			var refused *RefusedError
			if tt.reason == "" {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tt.reason) {
				t.Errorf("got %v, want a refusal about %q", err, tt.reason)
			}
		})
	}
}

// If a by-value struct has the address of the same byte of a free block in both runs, check-restored decides about it, as about
// padding. The address is refused if an owner may rely on it, or if it is a parameter of its own.
func TestOldAddressesInStructs(t *testing.T) {
	free := []uint8{1, 1, 0}
	for _, tt := range []struct {
		name         string
		size         uint32 // of the parameter
		offset       uint64
		begin, ready [2][]uint8 // blocks of 1 KiB each, live or not, by run
		named        bool       // a tensor lies there
		freed        bool       // the allocation is, before the engine is ready
		want         string     // "padding", "pointers", or the reason of the refusal
	}{
		{"nobody's", 24, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{}, false, false, "padding"},
		{"nobody's at ready as well", 24, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{{1, 1, 0}, {1, 0, 0}}, false, false, "padding"},
		{"a parameter of its own", 8, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{}, false, false, "free when the capture phase began"},
		{"somebody's at ready", 24, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{{1, 1, 1}, {1, 1, 1}}, false, false, "free when the capture phase began"},
		{"somebody's at ready of one run", 24, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{free, {1, 1, 1}}, false, false, "free when the capture phase began"},
		{"somebody's in record-b", 24, 2048 + 8, [2][]uint8{free, {1, 1, 1}}, [2][]uint8{}, false, false, "free when the capture phase began"},
		{"a named tensor's", 24, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{}, true, false, "free when the capture phase began"},
		{"freed", 24, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{}, false, true, "padding"},
		{"freed, a parameter of its own", 8, 2048 + 8, [2][]uint8{free, free}, [2][]uint8{}, false, true, "freed before the engine was ready"},
		{"an owner's block", 24, 1024 + 8, [2][]uint8{free, free}, [2][]uint8{}, false, false, "pointers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var runs [2]*recording.Recording
			for i, at := range []place{placeA, placeB} {
				tp, base := newTape(byte(i+1)), at(0)+uint64(i)*0x800
				mark := func(live []uint8) {
					for k, l := range live {
						tp.add(&trace.Block{Addr: base + uint64(k)*1024, Size: 1024, Live: l})
					}
				}
				tp.function(0, trace.ModuleModule, "k", tt.size)
				tp.alloc(base, 4096)
				if tt.named {
					tp.add(&trace.Tensor{Name: "w", Addr: base + 2048, Size: 512, Role: 1, Dtype: 6})
				}
				mark(tt.begin[i])
				tp.phase("capture")
				words := []uint64{base + tt.offset, base + tt.offset + 512, 9}
				tp.capture("g", 1, tp.kernel(0, words[:tt.size/8]...))
				mark(tt.ready[i])
				if tt.freed {
					tp.free(0)
				}
				tp.phase("ready")
				runs[i] = tp.recording(t)
			}
			spec, pads, err := Compile(runs[0], runs[1], nil)
			var refused *RefusedError
			if tt.want != "padding" && tt.want != "pointers" {
				if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tt.want) {
					t.Errorf("got %v, want a refusal about %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var presumed []uint32
			for _, p := range pads {
				presumed = append(presumed, p.Offset, p.Size)
			}
			k := onlyKernel(spec)
			if tt.want == "pointers" {
				if len(k.Relocations) != 2 || len(pads) > 0 {
					t.Errorf("relocations %v, padding %v", k.Relocations, presumed)
				}
				return
			}
			if len(k.Relocations) > 0 || !slices.Equal(presumed, []uint32{0, 8, 8, 8}) || !bytes.Equal(k.Params[:16], make([]byte, 16)) {
				t.Errorf("relocations %v, padding %v, parameters % x", k.Relocations, presumed, k.Params)
			}
			var word *WordError
			if _, err := proven(runs[0], runs[1]); !errors.As(err, &word) || !strings.Contains(word.Reason, " ready") {
				t.Errorf("without a run to settle it: %v", err)
			}
		})
	}
}
