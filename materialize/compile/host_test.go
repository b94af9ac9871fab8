package compile

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/internal/spill"
	"medusa/interpose/trace"
)

// hostTape is a run in which a kernel gets a pointer and a word. The process's own memory is [1<<20, 2<<20) times the seed, and above
// all device memory.
func hostTape(seed byte, at place, word uint64) *tape {
	tp := newTape(seed)
	tp.function(0, trace.ModuleModule, "k", 8, 8)
	tp.alloc(at(0), 4096)
	tp.phase("capture")
	tp.capture("g", 1, tp.kernel(0, at(0), word))
	tp.add(&trace.Host{Ranges: []trace.HostRange{{Addr: uint64(seed) << 20, Size: 1 << 20}, {Addr: 0x7ffd_0000_0000, Size: 1 << 32}}})
	tp.phase("ready")
	return tp
}

// An address of the process's own memory is presumed not to matter, as a whole. It becomes a value other than null.
func TestAddressOfHostMemory(t *testing.T) {
	tests := []struct {
		name string
		word [3]uint64 // in record-a, record-b and a third process
		pads [2]int    // found by compiling, and by the third process
		err  string
	}{
		{"of the stack", [3]uint64{0x7ffd_1234_5670, 0x7ffd_8765_4320, 0x7ffd_8765_4670}, [2]int{1, 0}, ""},
		{"alike in two runs", [3]uint64{0x7ffd_1234_5670, 0x7ffd_1234_5670, 0x7ffd_8765_4320}, [2]int{0, 1}, ""},
		{"alike in all runs", [3]uint64{0x7ffd_1234_5670, 0x7ffd_1234_5670, 0x7ffd_1234_5670}, [2]int{0, 0}, ""},
		{"small, of the heap", [3]uint64{1<<20 + 64, 2<<20 + 64, 3<<20 + 64}, [2]int{1, 0}, ""},
		{"a number in the third run", [3]uint64{7, 7, 8}, [2]int{}, "parameter 1 of k is"},
		{"in one run only", [3]uint64{0x7ffd_1234_5670, 0x6ffd_1234_5670, 0}, [2]int{}, "leads to no live allocation"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec, pads, err := Compile(hostTape(1, placeA, tt.word[0]).recording(t), hostTape(2, placeB, tt.word[1]).recording(t), nil)
			if err != nil {
				var word *WordError
				if tt.err == "" || !errors.As(err, &word) || !strings.Contains(err.Error(), tt.err) {
					t.Fatal(err)
				}
				return
			}
			more, err := CompareNodes(spec, hostTape(3, placeA, tt.word[2]).recording(t), pads, false)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || [2]int{len(pads), len(more)} != tt.pads {
				t.Fatalf("%v: %d and %d words presumed, want %v", err, len(pads), len(more), tt.pads)
			}
			all := append(pads, more...)
			if err := all.Settle(&spill.File{}); err != nil {
				t.Fatal(err)
			}
			if word := secondWord(spec); len(all) > 0 && (all[0].Size != 8 || word == 0 || word == tt.word[0]) {
				t.Errorf("%d bytes presumed, settled as %#x", all[0].Size, word)
			}
			if again, err := CompareNodes(spec, hostTape(3, placeA, tt.word[2]).recording(t), nil, true); err != nil || len(again) > 0 {
				t.Errorf("the settled artifact in a third process: %d words presumed, %v", len(again), err)
			}
		})
	}
}

func secondWord(spec *graphir.Spec) uint64 {
	return binary.LittleEndian.Uint64(spec.Graphs[0].Nodes[0].Kernel().Params[8:])
}
