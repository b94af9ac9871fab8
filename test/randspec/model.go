package randspec

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"medusa/graphir"
)

// Model returns graphs as a 7B-class Llama leaves them: one a batch size, eleven kernels a layer, matrix products by
// kernels that depend on the batch size, weights in allocations of their own, temporaries at other offsets in every graph.
func Model(graphs, layers int) *graphir.Spec {
	m := &modeller{Rand: rand.New(rand.NewPCG(7, 7)), spec: &graphir.Spec{}}
	for range 7*layers + 3 { // weights
		m.alloc(graphir.OwnerEngine, 32<<20)
	}
	for range layers { // KV cache
		m.alloc(graphir.OwnerEngine, 256<<20)
	}
	m.inputs = m.alloc(graphir.OwnerEngine, 1<<20)
	m.pool = m.alloc(graphir.OwnerGraph, 512<<20)
	m.kernels()
	for i := range graphs {
		m.graph(graphs-i, layers)
	}
	return m.spec
}

type modeller struct {
	*rand.Rand
	spec         *graphir.Spec
	inputs, pool uint32
}

func (m *modeller) alloc(owner graphir.Owner, size uint64) uint32 {
	id := uint32(len(m.spec.Allocations))
	m.spec.Allocations = append(m.spec.Allocations, graphir.Allocation{Kind: graphir.AllocDevice, Owner: owner, Size: size, Live: true})
	m.spec.Sequence = append(m.spec.Sequence, graphir.Step{Alloc: id})
	return id
}

const plainKernels, gemmKernels = 8, 6

// kernels makes two modules: the engine's own kernels, and hidden matrix products of which few are used.
func (m *modeller) kernels() {
	params := func(pointers, ints int) []graphir.Param {
		var out []graphir.Param
		at := uint32(0)
		for i := range pointers + ints {
			size := uint32(8)
			if i >= pointers {
				size = 4
			}
			out = append(out, graphir.Param{Offset: at, Size: size})
			at += size
		}
		return out
	}
	own := graphir.Module{Kind: graphir.ModuleLoaded, ImageSHA256: [32]byte{1}, ImageSize: 200000}
	for i := range plainKernels {
		name := fmt.Sprintf("_ZN4vllm%02dfused_kernel_with_a_long_mangled_nameIN3c104HalfEEEvPT_PKS3_S6_fi", i)
		own.Functions = append(own.Functions, name)
		m.spec.Kernels = append(m.spec.Kernels, graphir.Kernel{Name: name, Params: params(5, 6)})
	}
	hidden := graphir.Module{Kind: graphir.ModuleHidden}
	for i := range 400 {
		hidden.Functions = append(hidden.Functions, fmt.Sprintf("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize%03dx128x64_warpgroupsize1x1x1_execute", i))
	}
	for i := range gemmKernels {
		m.spec.Kernels = append(m.spec.Kernels, graphir.Kernel{Name: hidden.Functions[60*i], Module: 1, Params: params(4, 16)})
	}
	m.spec.Modules = []graphir.Module{own, hidden}
}

func (m *modeller) graph(batch, layers int) {
	g := graphir.Graph{Label: fmt.Sprintf("decode %d", batch), Batch: int64(batch)}
	class := uint32(plainKernels + min(batch*gemmKernels/36, gemmKernels-1)) // each range of batch sizes has its matrix product
	temp := uint64(0)
	add := func(kernel uint32, x int, fixed ...graphir.Pointer) {
		k := &graphir.KernelNode{Kernel: kernel, Grid: [3]uint32{uint32(batch * x), 1, 1}, Block: [3]uint32{128, 1, 1}}
		params := m.spec.Kernels[kernel].Params
		last := params[len(params)-1]
		k.Params = make([]byte, last.Offset+last.Size)
		for i, p := range params {
			switch {
			case p.Size == 4:
				value := uint32(i * x)
				if i == len(params)-1 || i == len(params)-3 {
					value = uint32(batch * x)
				}
				binary.LittleEndian.PutUint32(k.Params[p.Offset:], value)
			case len(fixed) > 0:
				k.Relocations = append(k.Relocations, graphir.Relocation{Offset: p.Offset, Pointer: fixed[0]})
				fixed = fixed[1:]
			default:
				// A caching allocator hands out any free block: no pattern survives from graph to graph.
				k.Relocations = append(k.Relocations, graphir.Relocation{Offset: p.Offset, Pointer: graphir.Pointer{Index: m.pool, Offset: temp}})
				temp = m.Uint64N(1<<20) * 512
			}
		}
		g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeKernel, Params: k})
	}
	add(0, 1, graphir.Pointer{Index: m.inputs}, graphir.Pointer{Index: 0})
	for layer := range layers {
		weight := func(i int) graphir.Pointer { return graphir.Pointer{Index: uint32(3 + 7*layer + i)} }
		kv := graphir.Pointer{Index: uint32(3 + 7*layers + layer)}
		add(1, 1, weight(0))
		add(class, 3, weight(1))
		add(2, 1, graphir.Pointer{Index: m.inputs, Offset: 4096})
		add(3, 1, kv, graphir.Pointer{Index: m.inputs, Offset: 8192})
		add(4, 32, kv, graphir.Pointer{Index: m.inputs, Offset: 12288})
		add(4, 8, kv)
		add(class, 1, weight(2))
		add(5, 1, weight(3))
		add(class, 6, weight(4), weight(5))
		add(6, 11)
		add(class, 2, weight(6))
	}
	add(1, 1, graphir.Pointer{Index: 1})
	add(class, 8, graphir.Pointer{Index: 2})
	add(7, 1)
	for i := 1; i < len(g.Nodes); i++ {
		g.Edges = append(g.Edges, graphir.Edge{From: uint32(i - 1), To: uint32(i)})
	}
	m.spec.Graphs = append(m.spec.Graphs, g)
}
