package compile

import (
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// mappingTape records mappings of 4096 bytes at the given places, the last of them in the capture phase if late is true, a
// named tensor across the first two, and a graph with one pointer.
func mappingTape(at []uint64, late bool, pointer uint64, blocks ...*trace.Block) func(tp *tape) {
	return func(tp *tape) {
		tp.function(0, trace.ModuleModule, "k", 8)
		for i, addr := range at {
			if late && i == len(at)-1 {
				tp.phase("warmup")
			}
			tp.add(&trace.Alloc{ID: uint32(i), Kind: trace.AllocVMM, Addr: addr, Size: 4096})
		}
		if !late {
			for _, b := range blocks {
				tp.add(b)
			}
			tp.phase("warmup")
		}
		tp.add(&trace.Tensor{Name: "t", Addr: at[0] + 64, Size: 5000, Role: 1, Dtype: 1, Shape: []int64{1250}})
		tp.capture("g", 1, tp.kernel(0, pointer))
		tp.phase("ready")
	}
}

func compileTapes(t *testing.T, a, b func(tp *tape)) (*graphir.Spec, error) {
	t.Helper()
	ta, tb := newTape(1), newTape(2)
	a(ta)
	b(tb)
	return proven(ta.recording(t), tb.recording(t))
}

// Mappings that lay side by side in both runs are a chain: its boundary is one byte, and a tensor may span it.
func TestMappingsSideBySide(t *testing.T) {
	const a, b = 0x10000000, 0x70002000
	spec, err := compileTapes(t, mappingTape([]uint64{a, a + 4096, a + 8192}, false, a+4096),
		mappingTape([]uint64{b, b + 4096, b + 12288}, false, b+4096))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{0, 1, 0} {
		if got := spec.Allocations[i].ContiguousTo; got != want {
			t.Errorf("mapping %d: behind %d, want %d", i, got, want)
		}
	}
	if got, want := spec.Graphs[0].Nodes[0].Kernel().Relocations[0].Pointer, (graphir.Pointer{Index: 1}); got != want {
		t.Errorf("the boundary is %v, want %v", got, want)
	}
	// If they lie so in one run only, the tensor lies outside of memory in the other.
	if _, err = compileTapes(t, mappingTape([]uint64{a, a + 4096}, false, a+16), mappingTape([]uint64{b, b + 16384}, false, b+16)); err == nil {
		t.Error("a tensor across mappings that lie apart in record-b was compiled")
	}
	// A mapping of the capture phase behind the engine's own memory cannot be made.
	_, err = compileTapes(t, mappingTape([]uint64{a, a + 4096, a + 8192}, true, a+8200), mappingTape([]uint64{b, b + 4096, b + 8192}, true, b+8200))
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "contiguous to one that the engine had made") {
		t.Errorf("a mapping of the capture phase behind the engine's: %v", err)
	}
}

// A block may begin in the mapping before the one that a pointer leads into.
func TestBlockAcrossMappings(t *testing.T) {
	const a, b = 0x10000000, 0x70002000
	tape := func(base uint64, live uint8) func(tp *tape) {
		return mappingTape([]uint64{base, base + 4096}, false, base+8000, &trace.Block{Addr: base, Size: 8192, Live: live})
	}
	spec, err := compileTapes(t, tape(a, 1), tape(b, 1))
	if err != nil {
		t.Fatal(err)
	}
	if !spec.Allocations[1].Suballocated || len(spec.BlockMap) == 0 {
		t.Errorf("the second mapping is suballocated: %v, by block map %x", spec.Allocations[1].Suballocated, spec.BlockMap)
	}
	if _, err := compileTapes(t, tape(a, 0), tape(b, 0)); err == nil || !strings.Contains(err.Error(), "in a block that was free") {
		t.Errorf("a pointer into a free block: %v", err)
	}
}
