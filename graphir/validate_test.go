package graphir_test

import (
	"errors"
	"slices"
	"testing"

	"medusa/graphir"
)

func TestValidateNamesEachViolation(t *testing.T) {
	kernel := func(s *graphir.Spec) *graphir.KernelNode { return s.Graphs[1].Nodes[0].Kernel }
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
		{"kernels[0].params[1]: offset 7 overlaps the one before, which ends at 8", func(s *graphir.Spec) {
			s.Kernels[0].Params[1].Offset = 7
		}},
		{"graphs[1].nodes[0].kernel: kernel 2 of 2", func(s *graphir.Spec) { kernel(s).Kernel = 2 }},
		{"graphs[1].nodes[0].params: 11 bytes, kernel 0 takes 12", func(s *graphir.Spec) { kernel(s).Params = kernel(s).Params[:11] }},
		{"graphs[1].nodes[0]: empty launch of grid [1 0 1], block [128 1 1]", func(s *graphir.Spec) { kernel(s).Grid[1] = 0 }},
		{"graphs[1].nodes[0].fixups[0]: alloc 99 of 4", func(s *graphir.Spec) { kernel(s).Fixups[0].Pointer.Alloc = 99 }},
		{"graphs[1].nodes[0].fixups[0]: bytes 2097153+0 of alloc 2, which has 2097152", func(s *graphir.Spec) {
			kernel(s).Fixups[0].Pointer.Offset = 2<<20 + 1
		}},
		{"graphs[1].nodes[0].fixups[0]: bytes 5 to 13 of 12", func(s *graphir.Spec) { kernel(s).Fixups[0].Offset = 5 }},
		{"graphs[1].nodes[0].fixups[0]: the bytes that it stands for are not zero", func(s *graphir.Spec) { kernel(s).Params[7] = 1 }},
		{"graphs[1].nodes[0].fixups[1]: offset 4 overlaps the one before, which ends at 8", func(s *graphir.Spec) {
			kernel(s).Params[8] = 0
			kernel(s).Fixups = append(kernel(s).Fixups, graphir.Fixup{Offset: 4})
		}},
		{"graphs[0].nodes[2].dst: alloc 4 of 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[2].Memset.Dst.Alloc = 4 }},
		{"graphs[0].nodes[2].elem_size: 3 is not 1, 2 or 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[2].Memset.ElemSize = 3 }},
		{"graphs[0].nodes[3].src: alloc 4 of 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[3].Memcpy.Src.Pointer.Alloc = 4 }},
		{"graphs[0].nodes[3].dst: alloc 4 of 4", func(s *graphir.Spec) { s.Graphs[0].Nodes[3].Memcpy.Dst.Pointer.Alloc = 4 }},
		{"graphs[0].nodes[4]: type 0 does not go with the parameters that are set", func(s *graphir.Spec) {
			s.Graphs[0].Nodes[4].Type = graphir.NodeKernel
		}},
		{"graphs[0].nodes[2]: type 2 does not go with the parameters that are set", func(s *graphir.Spec) {
			s.Graphs[0].Nodes[2].Memcpy = &graphir.MemcpyNode{}
		}},
		{"graphs[0].nodes[4]: type 3 does not go with the parameters that are set", func(s *graphir.Spec) { s.Graphs[0].Nodes[4].Type = 3 }},
		{"graphs[0].edges[1]: 0 to 5 of 5 nodes", func(s *graphir.Spec) { s.Graphs[0].Edges[1].To = 5 }},
		{"graphs[0].edges: they form a cycle", func(s *graphir.Spec) { s.Graphs[0].Edges[4] = graphir.Edge{From: 3, To: 0} }},
		{"contents[0]: bytes 500+16 of alloc 3, which has 512", func(s *graphir.Spec) { s.Contents[0].Offset = 500 }},
		{"contents[0].fixups[0]: alloc 4 of 4", func(s *graphir.Spec) { s.Contents[0].Fixups[0].Pointer.Alloc = 4 }},
		{"contents[1]: overlaps contents[0]", func(s *graphir.Spec) { s.Contents[1].Offset = 15 }},
		{"contents[1].unstable[0]: bytes 1+4 of 4, behind 0", func(s *graphir.Spec) { s.Contents[1].Unstable[0].Size = 4 }},
		{"contents[1].unstable[0]: its bytes are not zero", func(s *graphir.Spec) { s.Contents[1].Data[2] = 1 }},
		{"tensors[0].role: unknown role 5", func(s *graphir.Spec) { s.Tensors[0].Role = 5 }},
		{"tensors[0].dtype: unknown type 0", func(s *graphir.Spec) { s.Tensors[0].DType = 0 }},
		{"tensors[1].at: bytes 0+1048577 of alloc 0, which has 1048576", func(s *graphir.Spec) { s.Tensors[1].Size++ }},
		{"tensors[1].shape: negative size -2", func(s *graphir.Spec) { s.Tensors[1].Shape[0] = -2 }},
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
	s.Graphs[0].Nodes[0].Kernel.Kernel = 9
	s.Triggers[0].Batch = 3
	var got *graphir.ValidationError
	if !errors.As(s.Validate(), &got) || got.Total != 3 || len(got.Problems) != 3 {
		t.Errorf("got %v", s.Validate())
	}
}

// An offset may be one past the end, as pointers to the end of a buffer are.
func TestValidateAllowsOnePastTheEnd(t *testing.T) {
	s := handmade()
	s.Graphs[0].Nodes[0].Kernel.Fixups[0].Pointer = graphir.Pointer{Alloc: 3, Offset: 512}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
