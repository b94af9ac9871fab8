package graphir_test

import (
	"slices"

	"medusa/graphir"
)

// handmade is a small Spec written by hand that uses every field. Its encoding is testdata/v1.graph.
func handmade() *graphir.Spec {
	scale := func(batch uint32) graphir.Node {
		return graphir.Node{Type: graphir.NodeKernel, Params: &graphir.KernelNode{
			Kernel: 0, Grid: [3]uint32{batch, 2, 1}, Block: [3]uint32{128, 1, 1}, SharedBytes: 1024,
			Params:      slices.Concat(make([]byte, 8), []byte{byte(batch), 0, 0, 0}),
			Relocations: []graphir.Relocation{{Offset: 0, Pointer: graphir.Pointer{Index: 2, Offset: 4096}}},
			Attrs:       []graphir.NodeAttr{{ID: 8, Value: [64]byte{0: 5}}},
		}}
	}
	byValue := graphir.Node{Type: graphir.NodeKernel, Params: &graphir.KernelNode{
		Kernel: 1, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 4, 1},
		Params:      slices.Concat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, make([]byte, 8), []byte{9, 10}),
		Relocations: []graphir.Relocation{{Offset: 8, Pointer: graphir.Pointer{Index: 3, Offset: 512}}},
	}}
	fill := graphir.Node{Type: graphir.NodeMemset, Params: &graphir.MemsetNode{
		Dst: graphir.Pointer{Index: 3, Offset: 16}, Pitch: 64, Value: 0xdead, ElemSize: 4, Width: 8, Height: 2}}
	move := graphir.Node{Type: graphir.NodeMemcpy, Params: &graphir.MemcpyNode{
		Src:   graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: 0, Offset: 8}, X: 1, Y: 2, Z: 3, Pitch: 256, Height: 4},
		Dst:   graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: 2, Offset: 0}, Pitch: 128, Height: 2},
		Width: 100, Height: 2, Depth: 1}}
	fork := []graphir.Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 1, To: 3}, {From: 2, To: 3, FromPort: 1, ToPort: 2, Type: 1}, {From: 4, To: 3}}
	return &graphir.Spec{
		Allocations: []graphir.Allocation{
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 1 << 20, Live: true},
			{Kind: graphir.AllocPinned, Owner: graphir.OwnerEngine, Size: 4096},
			{Kind: graphir.AllocVMM, Owner: graphir.OwnerEngine, Size: 2 << 20, Live: true},
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 512, Live: true},
		},
		Sequence: []graphir.Step{{Alloc: 0}, {Alloc: 1}, {Free: true, Alloc: 1}, {Alloc: 2}, {Alloc: 3}},
		Modules: []graphir.Module{
			{Kind: graphir.ModuleLibrary, ImageSHA256: [32]byte{0: 0xab, 31: 0xcd}, ImageSize: 12345, DSO: "libengine.so",
				BuildID: "00ff", DSOOffset: 4096, Functions: []string{"_Z5scalePfi"}},
			{Kind: graphir.ModuleHidden, Functions: []string{"gemm_64x64", "gemm_8x8"}},
		},
		Kernels: []graphir.Kernel{
			{Name: "_Z5scalePfi", Module: 0, Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}},
				Attrs: []graphir.FuncAttr{{ID: 8, Value: 65536}}},
			{Name: "gemm_8x8", Module: 1, Params: []graphir.Param{{Offset: 0, Size: 16}, {Offset: 16, Size: 2}}},
		},
		Graphs: []graphir.Graph{
			{Label: "decode 2", Batch: 2, Nodes: []graphir.Node{scale(2), byValue, fill, move, {Type: graphir.NodeEmpty}}, Edges: fork},
			{Label: "decode 1", Batch: 1, InstantiateFlags: 1,
				Nodes: []graphir.Node{scale(1), byValue, fill, move, {Type: graphir.NodeEmpty}}, Edges: slices.Clone(fork)},
		},
		Contents: []graphir.Content{
			{Alloc: 3, Offset: 0, Data: slices.Concat([]byte{7, 7, 7, 7}, make([]byte, 12)),
				Relocations: []graphir.Relocation{{Offset: 8, Pointer: graphir.Pointer{Index: 0, Offset: 1 << 20}}}},
			{Alloc: 3, Offset: 256, Data: []byte{1, 0, 0, 1}, Unstable: []graphir.Range{{Offset: 1, Size: 2}}},
		},
		Tensors: []graphir.Tensor{
			{Name: "tokens", Role: graphir.RoleInput, DType: graphir.I32, At: graphir.Pointer{Index: 2, Offset: 64}, Size: 8,
				Shape: []int64{2}, Lo: -1, Hi: 256, Distinct: true},
			{Name: "logits", Role: graphir.RoleOutput, DType: graphir.F16, At: graphir.Pointer{Index: 0}, Size: 1 << 20, Shape: []int64{2, 262144}},
		},
		Triggers: []graphir.Trigger{{Batch: 2, Kernels: []uint32{1}, Launches: 9}},
	}
}
