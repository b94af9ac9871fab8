package graphir_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"medusa/graphir"
)

// second is handmade with all features of version 2. Its encoding is testdata/v2.graph.
func second() *graphir.Spec {
	s := handmade()
	s.Globals = []graphir.Global{{Module: 0, Name: "state", Size: 64}, {Module: 1, Name: "table", Size: 256}}
	s.HostBuffers = []graphir.HostBuffer{{Size: 24}}
	s.Events = []graphir.Event{{Flags: 2, Step: 1}, {Step: 3}}
	s.TensorMaps = []graphir.TensorMap{{DataType: 7, Interleave: 1, Swizzle: 2, L2Promotion: 3, OOBFill: 1,
		GlobalDim: []uint64{64, 32}, GlobalStrides: []uint64{256}, BoxDim: []uint32{16, 8}, ElementStrides: []uint32{1, 1}}}
	s.Children = []graphir.Graph{
		{Nodes: []graphir.Node{{Type: graphir.NodeEventWait, Target: 1}, {Type: graphir.NodeEmpty}}, Edges: []graphir.Edge{{From: 0, To: 1}}},
		{Nodes: []graphir.Node{{Type: graphir.NodeChild, Target: 0}}},
	}
	s.Graphs = append(s.Graphs, graphir.Graph{Label: "later", Batch: 3, Nodes: []graphir.Node{
		{Type: graphir.NodeKernel, Params: &graphir.KernelNode{
			Kernel: 0, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: make([]byte, 200),
			Relocations: []graphir.Relocation{
				{Offset: 0, Pointer: graphir.Pointer{Index: 1, Offset: 8, Space: graphir.SpaceGlobal}},
				{Offset: 64, Pointer: graphir.Pointer{Index: 2, Offset: 512}, TensorMap: 1},
			},
			Attrs: []graphir.NodeAttr{{ID: 1, Value: [64]byte{8: 16}, Base: &graphir.Pointer{Index: 0, Offset: 4}}},
		}},
		{Type: graphir.NodeChild, Target: 1},
		{Type: graphir.NodeEventRecord, Target: 0},
		{Type: graphir.NodeMemset, Params: &graphir.MemsetNode{Dst: graphir.Pointer{Space: graphir.SpaceGlobal}, ElemSize: 1, Width: 4, Height: 1}},
		{Type: graphir.NodeMemcpy, Params: &graphir.MemcpyNode{
			Src:   graphir.MemcpyEnd{Pointer: graphir.Pointer{Space: graphir.SpaceHost}},
			Dst:   graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: 1, Space: graphir.SpaceGlobal}},
			Width: 24, Height: 1, Depth: 1}},
	}})
	s.Contents = append(s.Contents,
		graphir.Content{Space: graphir.SpaceHost, Data: []byte("twenty-four bytes of it!")},
		graphir.Content{Space: graphir.SpaceGlobal, Alloc: 1, Data: make([]byte, 136),
			Relocations: []graphir.Relocation{{Offset: 0, Pointer: graphir.Pointer{Index: 3, Offset: 1}, TensorMap: 1}, {Offset: 128, Pointer: graphir.Pointer{Space: graphir.SpaceGlobal}}}})
	return s
}

func TestGoldenVersion2(t *testing.T) {
	encoded, err := graphir.Encode(second())
	if err != nil {
		t.Fatal(err)
	}
	v2 := golden(t, "v2.graph", encoded, false)
	spec, err := graphir.Decode(v2)
	if err != nil {
		t.Fatalf("version 2 no longer loads: %v", err)
	}
	if !graphir.Equal(spec, second()) {
		t.Errorf("version 2 loads as something else:\n%s", dump(t, spec))
	}
	if !bytes.Equal(encoded, v2) {
		t.Errorf("encoding changed: %d bytes instead of %d", len(encoded), len(v2))
	}
	text := dump(t, spec)
	want := golden(t, "v2.txt", []byte(text), true)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("text dump changed (-want +got, -update accepts):\n%s", diff)
	}
}

// A reader of version 1 would take a global for an allocation. Anything that it does not know therefore raises the version.
func TestVersionSaysWhatIsUsed(t *testing.T) {
	text := func(s *graphir.Spec) string { return strings.SplitN(dump(t, s), ":", 2)[0] }
	if got := text(handmade()); got != "medusa graph 1" {
		t.Errorf("plain: %q", got)
	}
	if got := text(second()); got != "medusa graph 2" {
		t.Errorf("with version 2's tables: %q", got)
	}
	ipc := handmade()
	ipc.Allocations[1].Kind = graphir.AllocIPC
	if got := text(ipc); got != "medusa graph 2" {
		t.Errorf("with an IPC allocation: %q", got)
	}
}

func TestValidateVersion2(t *testing.T) {
	last := func(s *graphir.Spec) []graphir.Node { return s.Graphs[2].Nodes }
	for _, test := range []struct {
		want  string
		spoil func(s *graphir.Spec)
	}{
		{"graphs[2].nodes[0].relocations[0]: global 2 of 2", func(s *graphir.Spec) { last(s)[0].Kernel().Relocations[0].Pointer.Index = 2 }},
		{"graphs[2].nodes[0].relocations[0]: unknown(9) 1 of 0", func(s *graphir.Spec) { last(s)[0].Kernel().Relocations[0].Pointer.Space = 8 }},
		{"graphs[2].nodes[0].relocations[1]: tensor map 1 of 1", func(s *graphir.Spec) { last(s)[0].Kernel().Relocations[1].TensorMap = 2 }},
		{"graphs[2].nodes[0].relocations[1]: the bytes that it stands for are not zero", func(s *graphir.Spec) { last(s)[0].Kernel().Params[191] = 1 }},
		{"graphs[2].nodes[0].attrs[0]: alloc 9 of 4", func(s *graphir.Spec) { last(s)[0].Kernel().Attrs[0].Base.Index = 9 }},
		{"graphs[2].nodes[0].attrs[0]: the bytes that its base stands for are not zero", func(s *graphir.Spec) { last(s)[0].Kernel().Attrs[0].Value[7] = 1 }},
		{"graphs[2].nodes[1]: child graph 2 of 2 that come before", func(s *graphir.Spec) { last(s)[1].Target = 2 }},
		{"children[1].nodes[0]: child graph 1 of 1 that come before", func(s *graphir.Spec) { s.Children[1].Nodes[0].Target = 1 }},
		{"graphs[2].nodes[2]: event 2 of 2", func(s *graphir.Spec) { last(s)[2].Target = 2 }},
		{"graphs[2].nodes[3]: type 2 has no target", func(s *graphir.Spec) { last(s)[3].Target = 1 }},
		{"graphs[2].nodes[4].src: host 1 of 1", func(s *graphir.Spec) { last(s)[4].Memcpy().Src.Pointer.Index = 1 }},
		{"globals[1]: module 2 of 2", func(s *graphir.Spec) { s.Globals[1].Module = 2 }},
		{"tensor_maps[0]: ranks 2, 0, 2, 2", func(s *graphir.Spec) { s.TensorMaps[0].GlobalStrides = nil }},
		{"contents[2]: bytes 1+24 of host 0, which has 24", func(s *graphir.Spec) { s.Contents[2].Offset = 1 }},
		{"contents[3].relocations[1]: offset 127 overlaps the relocation before it, which ends at 128", func(s *graphir.Spec) { s.Contents[3].Relocations[1].Offset = 127 }},
		{"tensors[0].at: a tensor in a global", func(s *graphir.Spec) { s.Tensors[0].At.Space, s.Tensors[0].At.Index = graphir.SpaceGlobal, 1 }},
	} {
		s := second()
		test.spoil(s)
		err := s.Validate()
		var problems *graphir.ValidationError
		if !errors.As(err, &problems) || !slices.Contains(problems.Problems, test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
}

// Contiguous mappings, and a tensor across them.
func TestChains(t *testing.T) {
	chained := func() *graphir.Spec {
		s := handmade()
		n := uint32(len(s.Allocations))
		for i := range uint32(3) {
			a := graphir.Allocation{Kind: graphir.AllocVMM, Owner: graphir.OwnerEngine, Size: 4096, Live: true}
			s.Allocations = append(s.Allocations, a)
			s.Sequence = append(s.Sequence, graphir.Step{Alloc: n + i})
		}
		s.Allocations[n].ContiguousTo, s.Allocations[n+2].ContiguousTo = n+3, n+1 // address order: n+2, n, n+1
		s.Allocations[n+2].ContiguousTo, s.Allocations[n+1].ContiguousTo = 0, n+1
		s.Tensors[0].At, s.Tensors[0].Size = graphir.Pointer{Index: n + 2, Offset: 4000}, 8192
		return s
	}
	s := chained()
	n := uint32(len(s.Allocations)) - 3
	back := reread(t, s)
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
	chains := s.Contiguous()
	for i, want := range map[uint32][]uint32{n: {n + 1}, n + 1: {}, n + 2: {n, n + 1}, 0: nil} {
		if got := chains.Following(i); !slices.Equal(got, want) || chains.First(i) != (i != n && i != n+1) {
			t.Errorf("behind %d: %v, first %v, want %v", i, got, chains.First(i), want)
		}
	}
	want := []graphir.Part{{Alloc: n + 2, Offset: 4000, Size: 96}, {Alloc: n, Size: 4096, At: 96}, {Alloc: n + 1, Size: 4000, At: 4192}}
	if got := s.Parts(chains, s.Tensors[0].At, s.Tensors[0].Size); !slices.Equal(got, want) {
		t.Errorf("pieces %+v, want %+v", got, want)
	}
	for name, spoil := range map[string]func(s *graphir.Spec){
		"tensors[0].at: bytes 4000+8289":                    func(s *graphir.Spec) { s.Tensors[0].Size = 8289 },
		"not two live mappings of one owner":                func(s *graphir.Spec) { s.Allocations[n].Owner = graphir.OwnerGraph },
		"not two live mappings":                             func(s *graphir.Spec) { s.Allocations[n].Kind = graphir.AllocDevice },
		fmt.Sprintf("alloc %d of %d", n+99, n+3):            func(s *graphir.Spec) { s.Allocations[n].ContiguousTo = n + 100 },
		fmt.Sprintf("alloc %d is contiguous to already", n): func(s *graphir.Spec) { s.Allocations[n+1].ContiguousTo = n + 3 },
		"a ring": func(s *graphir.Spec) { s.Allocations[n+2].ContiguousTo = n + 2 },
	} {
		s := chained()
		spoil(s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}

// A framework's allocator: suballocated allocations, tensors by name, and the block map.
func TestSuballocatedAllocations(t *testing.T) {
	s := handmade()
	at := s.Tensors[0].At
	s.Allocations[at.Index].Suballocated = true
	s.Tensors[0].Size = 100
	s.Allocations[len(s.Allocations)-1].Thread = 3
	s.BlockMap = graphir.BlockMapDigest([]graphir.Block{{Alloc: 1, Offset: 512, Size: 512}, {Alloc: 1, Size: 512, Live: true}})
	if again := graphir.BlockMapDigest([]graphir.Block{{Alloc: 1, Size: 512, Live: true}, {Alloc: 1, Offset: 512, Size: 512}}); !bytes.Equal(s.BlockMap, again) {
		t.Error("the digest depends on the order of blocks")
	}
	half := s.Allocations[at.Index].Size / 2
	s.Vacant = []graphir.Vacancy{{Alloc: at.Index, Size: 1}, {Alloc: at.Index, Offset: half, Size: half, Taken: true}}
	for i := range s.Graphs {
		for k := range s.Graphs[i].Nodes {
			if m := s.Graphs[i].Nodes[k].Memset(); m != nil {
				m.Dst = graphir.Pointer{Space: graphir.SpaceTensor, Offset: 1}
			}
		}
	}
	back := reread(t, s)
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
	for want, spoil := range map[string]func(*graphir.Spec){
		"without a block map":   func(s *graphir.Spec) { s.BlockMap = nil },
		"is not suballocated":   func(s *graphir.Spec) { s.Allocations[at.Index].Owner = graphir.OwnerGraph },
		"is not contiguous to":  func(s *graphir.Spec) { s.Vacant[1].Offset = 0 },
		"which has":             func(s *graphir.Spec) { s.Vacant[1].Size = math.MaxUint64 },
		"vacant[1]: alloc 4000": func(s *graphir.Spec) { s.Vacant[1].Alloc = 4000 },
		"vacant[0]: bytes 0+0":  func(s *graphir.Spec) { s.Vacant[0].Size = 0 },
	} {
		s := reread(t, s)
		spoil(s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	back.Allocations[at.Index].Suballocated = false
	if err := back.Validate(); err == nil || !strings.Contains(err.Error(), "tensor 0 lies in an allocation that is not suballocated") {
		t.Errorf("a tensor by name in an allocation that is not suballocated: %v", err)
	}
}
