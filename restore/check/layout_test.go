package check

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"medusa/graphir"
	"medusa/restore/digest"
	"medusa/restore/memory"
)

func TestSpansOf(t *testing.T) {
	pointTo := func(allocs ...uint32) []graphir.Node {
		var relocations []graphir.Relocation
		for _, a := range allocs {
			relocations = append(relocations, graphir.Relocation{Pointer: graphir.Pointer{Index: a}})
		}
		return []graphir.Node{{Params: &graphir.KernelNode{Relocations: relocations}}}
	}
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{
			0: {Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 100, Live: true},
			1: {Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 100},             // freed
			2: {Kind: graphir.AllocPinned, Owner: graphir.OwnerEngine, Size: 100, Live: true}, // no graph reads it
			3: {Kind: graphir.AllocPinned, Owner: graphir.OwnerEngine, Size: 100, Live: true},
			4: {Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 100, Live: true}, // no graph reads it
			5: {Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 100, Live: true},
			6: {Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 100, Live: true}, // only a saved pointer leads there
		},
		Graphs: []graphir.Graph{{Nodes: pointTo(3, 5)}},
		Tensors: []graphir.Tensor{
			{Name: "w", Role: graphir.RoleWeight, At: graphir.Pointer{Index: 0}, Size: 40},
			{Name: "kv", Role: graphir.RoleKV, At: graphir.Pointer{Index: 0, Offset: 50}, Size: 50},
			{Name: "in", Role: graphir.RoleInput, At: graphir.Pointer{Index: 3}, Size: 10},
			{Name: "out", Role: graphir.RoleOutput, At: graphir.Pointer{Index: 5, Offset: 90}, Size: 10},
		},
		Contents: []graphir.Content{{Alloc: 5, Offset: 16, Data: make([]byte, 32),
			Relocations: []graphir.Relocation{{Offset: 0, Pointer: graphir.Pointer{Index: 6}}}, Unstable: []graphir.Range{{Offset: 8, Size: 4}}}},
	}
	back := func(n uint64) uint64 { return -n }
	want := []span{
		{0, 0, 40, digest.Weight, 0, 1, 0, 0, digest.ChunkBytes, 0, false}, {0, 40, 10, digest.Other, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false}, {0, 50, 50, digest.KV, 1, 1, back(50), 0, digest.ChunkBytes, 0, false},
		{3, 0, 10, digest.Input, 2, 1, 0, 0, digest.ChunkBytes, 0, false}, {3, 10, 90, digest.Other, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
		{5, 0, 16, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false}, {5, 16, 8, digest.Permanent, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false}, {5, 24, 4, digest.Unstable, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
		{5, 28, 20, digest.Permanent, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false}, {5, 48, 42, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false}, {5, 90, 10, digest.Output, 3, 1, back(90), 0, digest.ChunkBytes, 0, false},
		{6, 0, 100, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
	}
	if got := spansOf(spec); !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v, want\n%+v", got, want)
	}
}

// Memory without an owner is filled with garbage. Memory that the capture phase took in the engine's segments is left alone.
func TestSpansOfVacantMemory(t *testing.T) {
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 100, Live: true, Suballocated: true},
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 100, Live: true, Suballocated: true},
		},
		Tensors:  []graphir.Tensor{{Name: "w", Role: graphir.RoleWeight, At: graphir.Pointer{Index: 1}, Size: 40}},
		BlockMap: make([]byte, 32),
		Vacant:   []graphir.Vacancy{{Alloc: 0, Offset: 80, Size: 20, Taken: true}, {Alloc: 1, Offset: 30, Size: 20}, {Alloc: 1, Offset: 60, Size: 10, Taken: true}},
	}
	want := []span{
		{0, 0, 80, digest.Other, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
		{2, 0, 40, digest.Weight, 0, 1, 0, 0, digest.ChunkBytes, 0, false},
		{1, 40, 10, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false}, {1, 50, 10, digest.Other, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
		{1, 70, 30, digest.Other, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
	}
	if got := spansOf(spec); !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v, want\n%+v", got, want)
	}
}

// The results that graphs hand on to each other are in one piece of memory, however many tensors have their place in it.
func TestSpansOfHandedMemory(t *testing.T) {
	result := func(offset, size uint64, dtype graphir.DType) graphir.Tensor {
		return graphir.Tensor{Role: graphir.RoleOutput, DType: dtype, At: graphir.Pointer{Index: 0, Offset: offset}, Size: size}
	}
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 100, Live: true}},
		Graphs:      []graphir.Graph{{Nodes: []graphir.Node{{Params: &graphir.MemsetNode{}}}}},
		Tensors: []graphir.Tensor{result(0, 20, graphir.BF16), result(10, 20, graphir.BF16), result(30, 10, graphir.BF16),
			result(50, 10, graphir.F32), result(60, 8, graphir.I64)},
	}
	want := []span{
		{0, 0, 40, digest.Output, noTensor, 1, 0, graphir.BF16, digest.ChunkBytes, 0, false}, {0, 40, 10, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
		{0, 50, 10, digest.Output, noTensor, 1, 0, graphir.F32, digest.ChunkBytes, 0, false}, {0, 60, 8, digest.Output, 4, 1, ^uint64(59), 0, digest.ChunkBytes, 0, false},
		{0, 68, 32, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
	}
	if got := spansOf(spec); !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v, want\n%+v", got, want)
	}
	a, b := handedData(graphir.BF16, 0), handedData(graphir.BF16, 1)
	if bytes.Equal(a, b) || bytes.Equal(a[:4096], a[4096:8192]) {
		t.Error("two places in memory are filled alike")
	}
	for i := 0; i < len(a); i += 2 {
		if v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(a[i:])) << 16); !(v >= -1 && v < 1) {
			t.Fatalf("number %d is %v", i/2, v)
		}
	}
}

// A tensor lies in each of the mappings that it spans, and a graph that points to one of them may reach all.
func TestSpansOfChains(t *testing.T) {
	mapping := func(behind uint32) graphir.Allocation {
		return graphir.Allocation{Kind: graphir.AllocVMM, Owner: graphir.OwnerGraph, Size: 100, Live: true, ContiguousTo: behind}
	}
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{mapping(2), mapping(0), mapping(1)}, // in the order of addresses: 1, 0, 2
		Graphs:      []graphir.Graph{{Nodes: []graphir.Node{{Params: &graphir.MemsetNode{Dst: graphir.Pointer{Index: 1}}}}}},
		Tensors:     []graphir.Tensor{{Role: graphir.RoleInput, At: graphir.Pointer{Index: 1, Offset: 70}, Size: 150}},
	}
	want := []span{
		{0, 0, 100, digest.Input, 0, 1, 30, 0, digest.ChunkBytes, 0, false},
		{1, 0, 70, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false}, {1, 70, 30, digest.Input, 0, 1, ^uint64(69), 0, digest.ChunkBytes, 0, false},
		{2, 0, 20, digest.Input, 0, 1, 130, 0, digest.ChunkBytes, 0, false}, {2, 20, 80, digest.Temporary, noTensor, 1, 0, 0, digest.ChunkBytes, 0, false},
	}
	if got := spansOf(spec); !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v, want\n%+v", got, want)
	}
	spec.Tensors, spec.Graphs = nil, nil
	if got := spansOf(spec); len(got) != 0 {
		t.Errorf("nothing refers to the mappings: %+v", got)
	}
}

// Words that point into a live allocation hash alike in processes whose addresses differ.
func TestCanonicalise(t *testing.T) {
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Size: 0x100}, {Size: 0x200}, {Size: 0x100}}}
	words := func(base []uint64, offset uint64, values ...uint64) []byte {
		h := newHasher(&memory.Map{Spec: spec, Base: base})
		buf := make([]byte, -offset&7+uint64(8*len(values)))
		for i, v := range values {
			binary.LittleEndian.PutUint64(buf[-offset&7+uint64(8*i):], v)
		}
		h.objects.Canonicalise(buf, offset)
		return buf
	}
	for name, row := range map[string]struct {
		base   [2][]uint64
		offset uint64
		words  [2][]uint64
		equal  bool
	}{
		"pointer":                    {[2][]uint64{{0x1000, 0x2000, 0}, {0x9000, 0x4000, 0}}, 0, [2][]uint64{{0x1010, 0x2020}, {0x9010, 0x4020}}, true},
		"pointer in unaligned piece": {[2][]uint64{{0x1000, 0x2000, 0}, {0x9000, 0x4000, 0}}, 5, [2][]uint64{{0x1010}, {0x9010}}, true},
		"one past the end":           {[2][]uint64{{0x1000, 0x2000, 0}, {0x9000, 0x4000, 0}}, 0, [2][]uint64{{0x2200}, {0x4200}}, true},
		"other offset":               {[2][]uint64{{0x1000, 0x2000, 0}, {0x9000, 0x4000, 0}}, 0, [2][]uint64{{0x1010}, {0x9018}}, false},
		"other allocation":           {[2][]uint64{{0x1000, 0x2000, 0}, {0x9000, 0x4000, 0}}, 0, [2][]uint64{{0x1010}, {0x4010}}, false},
		"between allocations":        {[2][]uint64{{0x1000, 0x2000, 0}, {0x9000, 0x4000, 0}}, 0, [2][]uint64{{0x1800}, {0x9800}}, false},
		"missing allocation":         {[2][]uint64{{0x1000, 0x2000, 0x3000}, {0x1000, 0x2000, 0}}, 0, [2][]uint64{{0x3010}, {0x3010}}, false},
		"plain number":               {[2][]uint64{{0x1000, 0x2000, 0}, {0x9000, 0x4000, 0}}, 0, [2][]uint64{{7}, {7}}, true},
	} {
		a, b := words(row.base[0], row.offset, row.words[0]...), words(row.base[1], row.offset, row.words[1]...)
		if equal := reflect.DeepEqual(a, b); equal != row.equal {
			t.Errorf("%s: equal is %v, want %v (%x, %x)", name, equal, row.equal, a, b)
		}
	}
}

// A large KV cache is checked at the beginning of each tensor and sampled behind; a small one is checked whole.
func TestLargeKV(t *testing.T) {
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 10 * graphir.CheckedKV, Live: true}},
		Tensors: []graphir.Tensor{
			{Role: graphir.RoleKV, Size: graphir.CheckedKV},
			{Role: graphir.RoleKV, At: graphir.Pointer{Offset: graphir.CheckedKV}, Size: 9 * graphir.CheckedKV},
		},
	}
	looked := func(spans []span) (head, tail uint64) {
		for _, s := range spans {
			err := s.pieces(1<<30, func(from, size uint64) error {
				if s.stride == 1 {
					head += size
				} else {
					tail += size
				}
				if from+size > s.size {
					t.Errorf("piece at %d of %d bytes in a span of %d", from, size, s.size)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return head, tail
	}
	spans := spansOf(spec)
	if len(spans) != 4 {
		t.Fatalf("spans %+v, want a head and a tail of each tensor", spans)
	}
	head, tail := looked(spans)
	if head < graphir.CheckedKV || head > graphir.CheckedKV+4*digest.ChunkBytes {
		t.Errorf("%d bytes checked without gaps, want about %d", head, graphir.CheckedKV)
	}
	if tail < graphir.CheckedKV/8 || tail > graphir.CheckedKV/4+4*digest.ChunkBytes {
		t.Errorf("%d bytes sampled, want about %d", tail, graphir.CheckedKV/4)
	}
	spec.Tensors[1].Role = graphir.RoleInput
	if head, tail := looked(spansOf(spec)); head != 10*graphir.CheckedKV || tail != 0 {
		t.Errorf("small cache: %d bytes checked, %d sampled", head, tail)
	}
}

// Two contents may meet in one span, and a tensor may cover part of one.
func TestSaveContent(t *testing.T) {
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 64, Live: true}},
		Contents: []graphir.Content{
			{Offset: 0, Data: []byte("aaaaaaaaaaaaaaaa")},
			{Offset: 16, Data: []byte("bbbbbbbb????????"), Relocations: []graphir.Relocation{{Offset: 8, Pointer: graphir.Pointer{Offset: 1}}}},
		},
		Tensors: []graphir.Tensor{{Role: graphir.RoleInput, At: graphir.Pointer{Offset: 0}, Size: 8}},
	}
	c, err := New(Process{Memory: &memory.Map{Spec: spec, Base: []uint64{0x6361}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range spec.Contents {
		if err := c.saveContent(&spec.Contents[i]); err != nil {
			t.Fatal(err)
		}
	}
	permanent := span{alloc: 0, offset: 8, size: 24, class: digest.Permanent, tensor: noTensor, stride: 1, chunk: digest.ChunkBytes}
	if got, want := string(c.saved[permanent]), "aaaaaaaabbbbbbbbbc\x00\x00\x00\x00\x00\x00"; len(c.saved) != 1 || got != want {
		t.Errorf("saved %q in %d spans, want %q in one", got, len(c.saved), want)
	}
}
