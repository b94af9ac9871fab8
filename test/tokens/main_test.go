package main

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
)

// each makes the mistake in an artifact of several graphs, and returns the Spec before and after.
func each(t *testing.T, name string) (before, after *graphir.Spec) {
	t.Helper()
	spec := func() *graphir.Spec {
		kernel := func(to ...uint32) graphir.Node {
			k := &graphir.KernelNode{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: make([]byte, 64), Relocations: []graphir.Relocation{
				{Offset: 0, Pointer: graphir.Pointer{Index: 0, Offset: 240}}, // no room to move
				{Offset: 8, Pointer: graphir.Pointer{Index: 0, Offset: 128}},
			}}
			for i, alloc := range to {
				k.Relocations = append(k.Relocations, graphir.Relocation{Offset: uint32(16 + 8*i), Pointer: graphir.Pointer{Index: alloc}})
			}
			return graphir.Node{Type: graphir.NodeKernel, Params: k}
		}
		clearing := graphir.Node{Type: graphir.NodeMemset, Params: &graphir.MemsetNode{Dst: graphir.Pointer{Index: 3}, ElemSize: 1, Width: 16, Height: 1}}
		allocation := graphir.Allocation{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 256, Live: true}
		return &graphir.Spec{
			Allocations: []graphir.Allocation{allocation, allocation, allocation, allocation, allocation, allocation},
			Kernels:     []graphir.Kernel{{Name: "f"}},
			Tensors:     []graphir.Tensor{{Name: "w", Role: graphir.RoleWeight, At: graphir.Pointer{Index: 2}, Size: 64, Shape: []int64{4, 4}}},
			Graphs: []graphir.Graph{
				// The last three kernels read the weight.
				{Label: "FULL tokens=8 x", Batch: 8, Nodes: []graphir.Node{kernel(1, 3), kernel(2, 3), kernel(2, 3), kernel(2, 3)}, Edges: []graphir.Edge{{From: 0, To: 1}, {From: 1, To: 2}}},
				{Label: "PIECE 0 tokens=4 x", Batch: 4},
				{Label: "FULL tokens=8 y", Batch: 8},
				{Label: "FULL tokens=4 x", Batch: 4, Nodes: []graphir.Node{kernel(3, 5), clearing}},
			},
			Contents: []graphir.Content{
				{Alloc: 1, Data: make([]byte, 4)},
				{Alloc: 2, Data: make([]byte, 32), Relocations: []graphir.Relocation{{Offset: 0}}, Unstable: []graphir.Range{{Offset: 8, Size: 2}}},
				{Alloc: 3, Data: make([]byte, 32)}, // used most, and cleared
				{Alloc: 4, Data: make([]byte, 64)}, // unused
				{Alloc: 5, Data: make([]byte, 64), Unstable: []graphir.Range{{Size: 64}}},
			},
		}
	}
	before, after = spec(), spec()
	if what, err := mistakes[name](after, 0); err != nil || what == "" {
		t.Fatal(what, err)
	}
	return before, after
}

func TestSkippedKernel(t *testing.T) {
	before, after := each(t, "kernel")
	g := after.Graphs[0]
	if g.Nodes[2].Type != graphir.NodeEmpty || g.Nodes[2].Kernel() != nil || g.Nodes[1].Kernel() == nil || g.Nodes[3].Kernel() == nil {
		t.Error("not the one in the middle")
	}
	if !slices.Equal(g.Edges, before.Graphs[0].Edges) {
		t.Error("an edge is gone")
	}
}

func TestShiftedPointer(t *testing.T) {
	_, after := each(t, "pointer")
	r := after.Graphs[0].Nodes[2].Kernel().Relocations
	if r[2].Pointer.Offset != shift || r[1].Pointer.Offset != 128 {
		t.Error(r)
	}
}

func TestFlippedByte(t *testing.T) {
	_, after := each(t, "content")
	for i, c := range after.Contents {
		for at, b := range c.Data {
			if want := map[bool]byte{true: 0xff}[i == 1 && at == 10]; b != want {
				t.Errorf("contents %d byte %d is %#x, not %#x", i, at, b, want)
			}
		}
	}
}

func TestSwappedGraphs(t *testing.T) {
	_, after := each(t, "key")
	a, b := after.Graphs[0], after.Graphs[3]
	if a.Label != "FULL tokens=8 x" || a.Batch != 8 || len(a.Nodes) != 2 || b.Label != "FULL tokens=4 x" || b.Batch != 4 || len(b.Nodes) != 4 {
		t.Error(a.Label, len(a.Nodes), b.Label, len(b.Nodes))
	}
}

// calls returns an artifact of two ranks, each with a graph of three collective calls and a kernel, and the counts of the calls of a rank in the order of the nodes.
func calls() (*artifacts.Artifact, func(rank int) []uint64) {
	rank := func() *artifacts.Artifact {
		g := graphir.Graph{Label: "FULL tokens=8", Nodes: []graphir.Node{{Type: graphir.NodeKernel, Params: &graphir.KernelNode{}}}}
		for _, number := range []uint32{2, 0, 1} {
			call := graphir.NewCollective(graphir.Collective{Number: number, Count: 100 + uint64(number)})
			g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeCollective, Params: call})
		}
		return &artifacts.Artifact{Spec: &graphir.Spec{Graphs: []graphir.Graph{g}}}
	}
	a := rank()
	a.Peers = []*artifacts.Artifact{rank()}
	return a, func(rank int) (counts []uint64) {
		nodes := a.Rank(rank).Spec.Graphs[0].Nodes
		for i := range nodes {
			counts = append(counts, 0)
			if c := nodes[i].Collective(); c != nil {
				counts[i] = 1000*uint64(c.Call().Number) + c.Call().Count
			}
		}
		return counts
	}
}

func TestMistakesInCalls(t *testing.T) {
	for name, want := range map[string][]uint64{"hole": {0, 1102, 100, 0}, "holes": {0, 2100, 102, 1101}} {
		a, counts := calls()
		if what, err := change(a, name, "FULL tokens=8"); err != nil || what == "" {
			t.Fatal(name, what, err)
		}
		for r := range a.Ranks() {
			if !slices.Equal(counts(r), want) {
				t.Errorf("%s, rank %d: %d, not %d", name, r, counts(r), want)
			}
		}
	}
	one := &artifacts.Artifact{Spec: &graphir.Spec{Graphs: []graphir.Graph{{Label: "FULL tokens=8"}}}}
	if _, err := change(one, "hole", "FULL tokens=8"); !errors.Is(err, errNothing) {
		t.Error(err)
	}
}

// Ranks whose graphs are in one slice get the mistake once each.
func TestKeysOfAllRanks(t *testing.T) {
	shared := []graphir.Graph{{Label: "FULL tokens=8", Batch: 8, Nodes: make([]graphir.Node, 8)}, {Label: "FULL tokens=4", Batch: 4, Nodes: make([]graphir.Node, 4)}}
	a := &artifacts.Artifact{Spec: &graphir.Spec{Graphs: shared}, Peers: []*artifacts.Artifact{{Spec: &graphir.Spec{Graphs: shared}}}}
	if _, err := change(a, "key", "FULL tokens=8"); err != nil {
		t.Fatal(err)
	}
	for r := range a.Ranks() {
		if g := a.Rank(r).Spec.Graphs[0]; g.Label != "FULL tokens=8" || g.Batch != 8 || len(g.Nodes) != 4 {
			t.Errorf("rank %d: %s has %d nodes", r, g.Label, len(g.Nodes))
		}
	}
}

// An artifact of a real engine stays readable.
func TestFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.medusa")
	in := filepath.Join("..", "e2e", "testdata", "golden", "example.medusa")
	if what, err := spoil(in, out, "key", "decode-4"); err != nil {
		t.Fatal(what, err)
	}
	if _, err := artifacts.Check(out); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][2]string{{"kernel", "prefill"}, {"nothing", "decode-4"}} {
		if _, err := spoil(in, out, wrong[0], wrong[1]); err == nil {
			t.Error(wrong)
		}
	}
}

// If an artifact has no place for a mistake, the error is errNothing.
func TestNothingOfThatKind(t *testing.T) {
	for name, change := range mistakes {
		empty := &graphir.Spec{Graphs: []graphir.Graph{{Label: "FULL tokens=8 x", Batch: 8}}}
		if _, err := change(empty, 0); !errors.Is(err, errNothing) {
			t.Error(name, err)
		}
	}
}

func TestWordsOfALabel(t *testing.T) {
	for _, tt := range []struct {
		label, words string
		want         bool
	}{
		{"FULL tokens=8 requests=8 uniform=1 query=None loras=3 parts=1", "FULL tokens=8 loras=3", true},
		{"FULL tokens=8 requests=8 uniform=1 loras=0", "FULL tokens=8 loras=3", false},
		{"FULL tokens=16 requests=8", "FULL tokens=1", false},
		{"draft decode FULL tokens=8 requests=8", "FULL tokens=8", false},
		{"draft decode FULL tokens=8 requests=8", "draft decode FULL tokens=8", true},
		{"PIECE 8 tokens=1 requests=None", "PIECE 1 tokens=8", false},
		{"decode-16", "decode-16", true},
		{"decode-16", "", false},
		{"", "decode-16", false},
	} {
		if has(tt.label, tt.words) != tt.want {
			t.Errorf("label %q, words %q: not %v", tt.label, tt.words, tt.want)
		}
	}
}
