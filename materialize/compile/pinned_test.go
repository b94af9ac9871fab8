package compile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// pinning makes a run with blocks of page-locked memory before each of three allocations, and with a graph that points to some of them. The
// recorder saves the contents of the blocks.
func pinning(seed byte, at place, blocks [3]int, to func(device, pinned []uint64) uint64) *tape {
	tp := newTape(seed)
	tp.function(0, trace.ModuleModule, "k", 8)
	var device, pinned []uint64
	var saved []trace.Record
	for i, n := range blocks {
		for range n {
			addr := at(100 + len(pinned))
			tp.add(&trace.Alloc{ID: tp.allocs, Kind: trace.AllocPinned, Addr: addr, Size: 24})
			saved = append(saved, &trace.Content{Alloc: tp.allocs, Data: make([]byte, 24)})
			tp.allocs++
			pinned = append(pinned, addr)
		}
		device = append(device, at(i))
		tp.alloc(at(i), 4096)
	}
	tp.phase("capture")
	tp.capture("g", 1, tp.kernel(0, to(device, pinned)))
	tp.phase("ready")
	tp.add(saved...)
	return tp
}

// How often an engine pins a block depends on time. The rest of both runs is the same, and so are the graphs.
func TestPinnedMemoryInAnyOrder(t *testing.T) {
	last := func(device, _ []uint64) uint64 { return device[2] + 16 }
	for _, blocks := range [][2][3]int{{{1, 0, 0}, {0, 0, 1}}, {{2, 0, 1}, {1, 1, 0}}, {{0, 0, 0}, {0, 2, 0}}, {{1, 1, 1}, {1, 1, 1}}} {
		a, b := pinning(1, placeA, blocks[0], last).recording(t), pinning(2, placeB, blocks[1], last).recording(t)
		spec, err := proven(a, b)
		if err != nil {
			t.Errorf("blocks %v: %v", blocks, err)
			continue
		}
		to := onlyKernel(spec).Relocations[0].Pointer
		devices := slices.DeleteFunc(slices.Clone(spec.Allocations), func(a graphir.Allocation) bool { return a.Kind != graphir.AllocDevice })
		if len(devices) != 3 || to.Offset != 16 || spec.Allocations[to.Index].Kind != graphir.AllocDevice || int(to.Index) != len(spec.Allocations)-1 {
			t.Errorf("blocks %v: the pointer leads to %v of %v", blocks, to, spec.Allocations)
		}
		// A third process may pin in another order, too.
		for _, other := range [][3]int{{0, 0, 0}, {3, 0, 0}, {1, 2, 3}} {
			if _, err := CompareNodes(spec, pinning(3, placeA, other, last).recording(t), nil, false); err != nil {
				t.Errorf("blocks %v, in a third process %v: %v", blocks, other, err)
			}
		}
	}
}

// A graph that refers to page-locked memory depends on its order: only the order tells the blocks apart.
func TestPinnedMemoryOfGraphs(t *testing.T) {
	first := func(_, pinned []uint64) uint64 { return pinned[0] }
	a := pinning(1, placeA, [3]int{1, 0, 1}, first).recording(t)
	_, err := proven(a, pinning(2, placeB, [3]int{1, 1, 0}, first).recording(t))
	var word *WordError
	if !errors.As(err, &word) {
		t.Errorf("another order: %v", err)
	}
	spec, err := proven(a, pinning(2, placeB, [3]int{1, 0, 1}, first).recording(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CompareNodes(spec, pinning(3, placeA, [3]int{1, 0, 1}, first).recording(t), nil, false); err != nil {
		t.Errorf("the same order in a third process: %v", err)
	}
	if _, err := CompareNodes(spec, pinning(3, placeA, [3]int{1, 1, 0}, first).recording(t), nil, false); err == nil || !strings.Contains(err.Error(), "compare allocation sequences") {
		t.Errorf("another order in a third process: %v", err)
	}
}

// Memory that is not page-locked has to come in order.
func TestOrderBesidePinnedMemory(t *testing.T) {
	run := func(seed byte, at place, pinned int, sizes ...uint64) *tape {
		tp := newTape(seed)
		for i := range pinned {
			tp.add(&trace.Alloc{ID: tp.allocs, Kind: trace.AllocPinned, Addr: at(100 + i), Size: 24})
			tp.allocs++
		}
		for i, size := range sizes {
			tp.alloc(at(i), size)
		}
		tp.phase("capture")
		tp.phase("ready")
		return tp
	}
	_, err := proven(run(1, placeA, 1, 4096, 8192).recording(t), run(2, placeB, 0, 8192, 4096).recording(t))
	var sequence *SequenceError
	if !errors.As(err, &sequence) || !strings.Contains(err.Error(), "4096 bytes in record-a") {
		t.Errorf("another order of device memory: %v", err)
	}
}
