package graphir_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"medusa/graphir"
)

func TestValidateNamesEachViolation(t *testing.T) {
	kernel := func(s *graphir.Spec) *graphir.KernelNode { return s.Graphs[1].Nodes[0].Kernel() }
	for _, test := range []struct {
		want  string
		spoil func(s *graphir.Spec)
	}{
		{"allocations[1].kind: unknown kind 10", func(s *graphir.Spec) { s.Allocations[1].Kind = 10 }},
		{"allocations[1].owner: unknown owner 0", func(s *graphir.Spec) { s.Allocations[1].Owner = 0 }},
		{"allocations[1].live: true, against the sequence", func(s *graphir.Spec) { s.Allocations[1].Live = true }},
		{"allocations[0].live: false, against the sequence", func(s *graphir.Spec) { s.Allocations[0].Live = false }},
		{"sequence[1]: allocates 3, next is 1", func(s *graphir.Spec) { s.Sequence[1].Alloc = 3 }},
		{"sequence[2]: alloc 4 of 4", func(s *graphir.Spec) { s.Sequence[2].Alloc = 4 }},
		{"sequence[2]: frees alloc 3 before it is allocated", func(s *graphir.Spec) { s.Sequence[2].Alloc = 3 }},
		{"sequence[3]: frees alloc 1 again, after sequence[2]", func(s *graphir.Spec) {
			s.Sequence = slices.Insert(s.Sequence, 3, graphir.Step{Free: true, Alloc: 1})
		}},
		{"sequence: allocates 3 of 4 allocations", func(s *graphir.Spec) { s.Sequence = s.Sequence[:4] }},
		{"modules[1].kind: unknown kind 0", func(s *graphir.Spec) { s.Modules[1].Kind = 0 }},
		{`modules[0].dso: "\xff" is not UTF-8`, func(s *graphir.Spec) { s.Modules[0].DSO = "\xff" }},
		{`modules[1].functions: "gemm_64x64" behind "gemm_8x8" (names are sorted and unique)`, func(s *graphir.Spec) {
			slices.Reverse(s.Modules[1].Functions)
		}},
		{"kernels[1]: module 2 of 2", func(s *graphir.Spec) { s.Kernels[1].Module = 2 }},
		{`kernels[1]: module 1 has no function "gemm"`, func(s *graphir.Spec) { s.Kernels[1].Name = "gemm" }},
		{"kernels[0].params[1]: offset 7 overlaps the parameter before it, which ends at 8", func(s *graphir.Spec) {
			s.Kernels[0].Params[1].Offset = 7
		}},
		{"graphs[1].nodes[0].kernel: kernel 2 of 2", func(s *graphir.Spec) { kernel(s).Kernel = 2 }},
		{"graphs[1].nodes[0].params: 11 bytes, kernel 0 takes 12", func(s *graphir.Spec) { kernel(s).Params = kernel(s).Params[:11] }},
		{"graphs[1].nodes[0]: empty launch of grid [1 0 1], block [128 1 1]", func(s *graphir.Spec) { kernel(s).Grid[1] = 0 }},
		{"graphs[1].nodes[0].relocations[0]: alloc 99 of 4", func(s *graphir.Spec) { kernel(s).Relocations[0].Pointer.Index = 99 }},
		{"graphs[1].nodes[0].relocations[0]: bytes 2097153+0 of alloc 2, which has 2097152", func(s *graphir.Spec) {
			kernel(s).Relocations[0].Pointer.Offset = 2<<20 + 1
		}},
		{"graphs[1].nodes[0].relocations[0]: bytes 5 to 13 of 12", func(s *graphir.Spec) { kernel(s).Relocations[0].Offset = 5 }},
		{"graphs[1].nodes[0].relocations[0]: the bytes that it stands for are not zero", func(s *graphir.Spec) { kernel(s).Params[7] = 1 }},
		{"graphs[1].nodes[0].relocations[1]: offset 4 overlaps the relocation before it, which ends at 8", func(s *graphir.Spec) {
			kernel(s).Params[8] = 0
			kernel(s).Relocations = append(kernel(s).Relocations, graphir.Relocation{Offset: 4})
		}},
		{"graphs[0].nodes[2].dst: alloc 4 of 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[2].Memset().Dst.Index = 4 }},
		{"graphs[0].nodes[2].elem_size: 3 is not 1, 2 or 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[2].Memset().ElemSize = 3 }},
		{"graphs[0].nodes[3].src: alloc 4 of 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[3].Memcpy().Src.Pointer.Index = 4 }},
		{"graphs[0].nodes[3].dst: alloc 4 of 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[3].Memcpy().Dst.Pointer.Index = 4 }},
		{"graphs[0].nodes[4]: type 0 does not go with the parameters that are set", func(s *graphir.Spec) {
			s.Graphs[0].Nodes[4].Type = graphir.NodeKernel
		}},
		{"graphs[0].nodes[2]: type 2 does not go with the parameters that are set", func(s *graphir.Spec) {
			s.Graphs[0].Nodes[2].Params = &graphir.MemcpyNode{}
		}},
		{"graphs[0].nodes[4]: type 3 does not go with the parameters that are set", func(s *graphir.Spec) { s.Graphs[0].Nodes[4].Type = 3 }},
		{"graphs[0].edges[1]: 0 to 5 of 5 nodes", func(s *graphir.Spec) { s.Graphs[0].Edges[1].To = 5 }},
		{"graphs[0].edges: they form a cycle", func(s *graphir.Spec) { s.Graphs[0].Edges[4] = graphir.Edge{From: 3, To: 0} }},
		{"contents[0]: bytes 500+16 of alloc 3, which has 512", func(s *graphir.Spec) { s.Contents[0].Offset = 500 }},
		{"contents[0].relocations[0]: alloc 4 of 4", func(s *graphir.Spec) { s.Contents[0].Relocations[0].Pointer.Index = 4 }},
		{"contents[1]: overlaps contents[0]", func(s *graphir.Spec) { s.Contents[1].Offset = 15 }},
		{"contents[1].unstable[0]: bytes 1+4 of 4, behind 0", func(s *graphir.Spec) { s.Contents[1].Unstable[0].Size = 4 }},
		{"contents[1].unstable[0]: its bytes are not zero", func(s *graphir.Spec) { s.Contents[1].Data[2] = 1 }},
		{"tensors[0].role: unknown role 6", func(s *graphir.Spec) { s.Tensors[0].Role = 6 }},
		{"tensors[0].dtype: unknown type 0", func(s *graphir.Spec) { s.Tensors[0].DType = 0 }},
		{"tensors[0].dtype: unknown type 8", func(s *graphir.Spec) { s.Tensors[0].DType = graphir.Address + 1 }},
		{"tensors[0].dtype: addresses in a tensor that is no weight", func(s *graphir.Spec) { s.Tensors[0].DType, s.Tensors[0].Role = graphir.Address, graphir.RoleInput }},
		{"tensors[1].at: bytes 0+1048577 of alloc 0, which has 1048576", func(s *graphir.Spec) { s.Tensors[1].Size++ }},
		{"tensors[1].shape: negative size -2", func(s *graphir.Spec) { s.Tensors[1].Shape[0] = -2 }},
		{"tensors[1].graphs: graph 2 of 2", func(s *graphir.Spec) { s.Tensors[1].Graphs = []uint32{0, 2} }},
		{"tensors[1].graphs: graph 1 behind 1", func(s *graphir.Spec) { s.Tensors[1].Graphs = []uint32{1, 1} }},
		{"tensors[0].graphs: a result in a tensor that is no output", func(s *graphir.Spec) { s.Tensors[0].Graphs = []uint32{0} }},
		{`notes[1].name: "output" comes twice`, func(s *graphir.Spec) { s.Notes = []graphir.Note{{Name: "output"}, {Name: "output"}} }},
		{"triggers[0].batch: no graph has batch 3", func(s *graphir.Spec) { s.Triggers[0].Batch = 3 }},
		{"triggers[0].kernels[0]: kernel 2 of 2", func(s *graphir.Spec) { s.Triggers[0].Kernels[0] = 2 }},
	} {
		s := handmade()
		test.spoil(s)
		var got *graphir.ValidationError
		if err := s.Validate(); !errors.As(err, &got) || !slices.Contains(got.Problems, test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
		if _, err := graphir.Encode(s); !errors.As(err, &got) {
			t.Errorf("%s: Encode: %v", test.want, err)
		}
	}
	if err := handmade().Validate(); err != nil {
		t.Errorf("unharmed: %v", err)
	}
}

func TestValidateCollectsAll(t *testing.T) {
	s := handmade()
	s.Allocations[0].Owner = 7
	s.Graphs[0].Nodes[0].Kernel().Kernel = 9
	s.Triggers[0].Batch = 3
	var got *graphir.ValidationError
	if !errors.As(s.Validate(), &got) || got.Total != 3 || len(got.Problems) != 3 {
		t.Errorf("got %v", s.Validate())
	}
}

// huge is a size that no file backs. Its sum with any other overflows 64 bits or the sign.
const huge = 1<<63 - 1

// Every size and every extent is checked against its object, even if sums overflow.
func TestValidateExtents(t *testing.T) {
	fill := func(s *graphir.Spec) *graphir.MemsetNode { return s.Graphs[0].Nodes[2].Memset() } // of alloc 3, which has 512 bytes
	move := func(s *graphir.Spec) *graphir.MemcpyNode { return s.Graphs[0].Nodes[3].Memcpy() } // to alloc 2, which has 2 MiB
	last := func(s *graphir.Spec) []graphir.Node { return s.Graphs[2].Nodes }                  // of version 2
	host := func(s *graphir.Spec) *graphir.MemcpyNode { return last(s)[4].Memcpy() }           // from host 0, which has 24 bytes
	chain := func(s *graphir.Spec, sizes ...uint64) {                                          // contiguous mappings
		for i, size := range sizes {
			a := graphir.Allocation{Kind: graphir.AllocVMM, Owner: graphir.OwnerGraph, Size: size, Live: true}
			if i > 0 {
				a.ContiguousTo = uint32(len(s.Allocations))
			}
			s.Sequence = append(s.Sequence, graphir.Step{Alloc: uint32(len(s.Allocations))})
			s.Allocations = append(s.Allocations, a)
		}
	}
	for _, test := range []struct {
		want  string
		spoil func(s *graphir.Spec)
	}{
		{"allocations[3].size: 9223372036854775807 bytes (at most 144115188075855872)", func(s *graphir.Spec) { s.Allocations[3].Size = huge }},
		{"allocations[4].size: 144115188075855873 bytes (at most 144115188075855872)", func(s *graphir.Spec) { chain(s, 1<<57, 1) }},
		{"globals[0].size: 9223372036854775807 bytes (at most 144115188075855872)", func(s *graphir.Spec) { s.Globals[0].Size = huge }},
		{"host_buffers[0].size: 9223372036854775807 bytes, of which contents hold 24", func(s *graphir.Spec) { s.HostBuffers[0].Size = huge }},
		{"host_buffers[0].size: 18446744073709551615 bytes, of which contents hold 24", func(s *graphir.Spec) { s.HostBuffers[0].Size = 1<<64 - 1 }},
		{"host_buffers[0].size: 25 bytes, of which contents hold 24", func(s *graphir.Spec) { s.HostBuffers[0].Size++ }},
		{"host_buffers[0].size: host buffers of more than 1073741824 bytes together", func(s *graphir.Spec) { s.Contents, s.HostBuffers[0].Size = nil, huge }},
		{"host_buffers[0].size: 24 bytes, of which contents hold 0", func(s *graphir.Spec) { s.Contents = slices.Delete(s.Contents, 2, 3) }},
		{"host_buffers[16].size: host buffers of more than 1073741824 bytes together", func(s *graphir.Spec) {
			data := make([]byte, 1<<26) // one blob of the file, used many times
			for range 16 {
				s.Contents = append(s.Contents, graphir.Content{Space: graphir.SpaceHost, Alloc: uint32(len(s.HostBuffers)), Data: data})
				s.HostBuffers = append(s.HostBuffers, graphir.HostBuffer{Size: 1 << 26})
			}
		}},

		{"graphs[0].nodes[2].dst: bytes 16+4096 of alloc 3, which has 512", func(s *graphir.Spec) {
			*fill(s) = graphir.MemsetNode{Dst: fill(s).Dst, ElemSize: 1, Width: 4096, Height: 1}
		}},
		{"graphs[0].nodes[2].dst: bytes 16+497 of alloc 3, which has 512", func(s *graphir.Spec) {
			*fill(s) = graphir.MemsetNode{Dst: fill(s).Dst, ElemSize: 1, Width: 497, Height: 1}
		}},
		{"graphs[0].nodes[2].dst: bytes 16+544 of alloc 3, which has 512", func(s *graphir.Spec) { fill(s).Height = 9 }},
		{"graphs[0].nodes[2].dst: 2 rows of 8 elements of 4 bytes at a pitch of 31 overlap, or span more than 64 bits", func(s *graphir.Spec) { fill(s).Pitch = 31 }},
		{"graphs[0].nodes[2].dst: 2 rows of 8 elements of 4 bytes at a pitch of 18446744073709551615 overlap, or span more than 64 bits",
			func(s *graphir.Spec) { fill(s).Pitch = 1<<64 - 1 }},
		{"graphs[0].nodes[2].dst: 1 rows of 4611686018427387905 elements of 4 bytes at a pitch of 64 overlap, or span more than 64 bits",
			func(s *graphir.Spec) { fill(s).Width, fill(s).Height = 1<<62+1, 1 }},

		{"graphs[2].nodes[4].src: bytes 0+4096 of host 0, which has 24", func(s *graphir.Spec) { host(s).Width = 4096 }},
		{"graphs[2].nodes[4].dst: bytes 0+4096 of global 1, which has 256", func(s *graphir.Spec) { host(s).Width = 4096 }},
		{"graphs[2].nodes[4].src: bytes 0+25 of host 0, which has 24", func(s *graphir.Spec) { host(s).Src.X = 1 }},
		{"graphs[2].nodes[4].src: bytes 1+24 of host 0, which has 24", func(s *graphir.Spec) { host(s).Src.Pointer.Offset = 1 }},
		{"graphs[2].nodes[4].src: bytes 0+48 of host 0, which has 24", func(s *graphir.Spec) { host(s).Src.Y, host(s).Src.Pitch = 1, 24 }},
		{"graphs[2].nodes[4].src: 24x1x1 bytes from (0, 1, 0) at a pitch of 0 and a height of 0 overlap, or span more than 64 bits",
			func(s *graphir.Spec) { host(s).Src.Y = 1 }},
		{"graphs[2].nodes[4].src: 24x1x1 bytes from (18446744073709551615, 0, 0) at a pitch of 0 and a height of 0 overlap, or span more than 64 bits",
			func(s *graphir.Spec) { host(s).Src.X = 1<<64 - 1 }},
		{"graphs[0].nodes[3].dst: bytes 0+2097252 of alloc 2, which has 2097152", func(s *graphir.Spec) { move(s).Dst.Y, move(s).Dst.Pitch = 1, 1<<20 }},
		{"graphs[0].nodes[3].src: 100x2x1 bytes from (1, 2, 3) at a pitch of 256 and a height of 3 overlap, or span more than 64 bits",
			func(s *graphir.Spec) { move(s).Src.Height = 3 }},
		{"graphs[0].nodes[3].src: 100x2x9223372036854775807 bytes from (1, 2, 3) at a pitch of 256 and a height of 4 overlap, or span more than 64 bits",
			func(s *graphir.Spec) { move(s).Depth = huge }},
		{"graphs[0].nodes[3].src: 100x9223372036854775807x1 bytes from (1, 2, 0) at a pitch of 256 and a height of 4 overlap, or span more than 64 bits",
			func(s *graphir.Spec) { move(s).Height, move(s).Src.Z = huge, 0 }},

		{"contents[0]: alloc 2 is the engine's to fill", func(s *graphir.Spec) { s.Contents[0].Alloc = 2 }},
		{"contents[0]: tensor 0 is the engine's to fill", func(s *graphir.Spec) {
			s.Allocations[2].Suballocated = true
			s.Contents[0].Space, s.Contents[0].Alloc = graphir.SpaceTensor, 0
		}},
		{"contents[0]: bytes 18446744073709551615+16 of alloc 3, which has 512", func(s *graphir.Spec) { s.Contents[0].Offset = 1<<64 - 1 }},
		{"contents[4]: bytes 512+16 of alloc 4, which has 512", func(s *graphir.Spec) { // in the next mapping of the chain
			chain(s, 512, 512)
			s.Contents = append(s.Contents, graphir.Content{Alloc: 4, Offset: 512, Data: make([]byte, 16)})
		}},
		{"tensors[0].at: bytes 64+18446744073709551615 of alloc 2, which has 2097152", func(s *graphir.Spec) { s.Tensors[0].Size = 1<<64 - 1 }},
		{"tensors[0].at: bytes 18446744073709551615+8 of alloc 2, which has 2097152", func(s *graphir.Spec) { s.Tensors[0].At.Offset = 1<<64 - 1 }},
		{"images[0]: 3 bytes, the module's image has 12345", func(s *graphir.Spec) {
			s.Images = []graphir.Image{{Data: []byte("abc")}}
			s.Modules[0].ImageSHA256 = sha256.Sum256([]byte("abc"))
		}},
	} {
		s := second()
		test.spoil(s)
		var got *graphir.ValidationError
		if err := s.Validate(); !errors.As(err, &got) || !slices.Contains(got.Problems, test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
	for name, change := range map[string]func(s *graphir.Spec){
		"as it is": func(*graphir.Spec) {},
		"a fill to the end": func(s *graphir.Spec) {
			*fill(s) = graphir.MemsetNode{Dst: fill(s).Dst, ElemSize: 4, Width: 124, Height: 1}
		},
		"a fill of nothing": func(s *graphir.Spec) { fill(s).Width, fill(s).Height = huge, 0 },
		"a copy to the end": func(s *graphir.Spec) { move(s).Dst.Pointer.Offset = 2<<20 - 228 },
		"a copy of nothing": func(s *graphir.Spec) { move(s).Width, move(s).Depth = huge, 0 },
		"a fill of two mappings": func(s *graphir.Spec) {
			chain(s, 512, 512)
			*fill(s) = graphir.MemsetNode{Dst: graphir.Pointer{Index: 4, Offset: 24}, ElemSize: 1, Width: 1000, Height: 1}
		},
	} {
		s := second()
		change(s)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An offset may be one past the end, as for pointers to the end of a buffer.
func TestValidateAllowsOnePastTheEnd(t *testing.T) {
	s := handmade()
	s.Graphs[0].Nodes[0].Kernel().Relocations[0].Pointer = graphir.Pointer{Index: 3, Offset: 512}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
