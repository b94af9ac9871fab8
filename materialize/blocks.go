package materialize

import (
	"cmp"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// A framework's allocator places tensors inside of driver allocations, and a process that repeats those need not place
// tensors alike (PyTorch breaks ties by address). So a pointer into an allocation that such an allocator divides resolves
// by the name of the tensor it leads into. Where it leads into none, index and offset hold only if the allocator's block
// map at the start of the capture phase was the same in both runs, and they hold online only where it is the same again.
// A pointer into a block that was free when the capture phase began is refused: online, something else may own it.

// block is one entry of a framework's block map at the start of the capture phase.
type block struct {
	graphir.Block
	addr uint64
}

// blockMap returns the blocks inside allocations by (allocation, offset).
func (r *Recording) blockMap() []block {
	start := r.phaseOrder("warmup", "capture")
	last := map[uint64]*trace.Block{}
	for _, b := range r.blocks {
		if b.Header().Order < start {
			last[b.Addr] = b
		}
	}
	live := r.liveAt(start)
	var m []block
	for _, b := range last {
		if a := live.holding(b.Addr); a != nil && a.space == graphir.SpaceAlloc {
			m = append(m, block{graphir.Block{Alloc: a.id, Offset: b.Addr - a.addr, Size: b.Size, Live: b.Live != 0}, b.Addr})
		}
	}
	slices.SortFunc(m, func(x, y block) int { return cmp.Compare(x.addr, y.addr) })
	return m
}

// tensorRange is a named tensor that lies in a divided allocation.
type tensorRange struct {
	addr, size uint64
	index      uint32 // in Spec.Tensors
}

// nameTensors makes the run resolve addresses inside of named tensors by name, where they lie in divided allocations.
func (r *Recording) nameTensors(divided map[uint32]bool) {
	live := r.liveAt(r.readyOrder)
	for i, t := range r.lastTensors() {
		if a := live.holding(t.Addr); a != nil && a.space == graphir.SpaceAlloc && divided[a.id] {
			r.named = append(r.named, tensorRange{t.Addr, t.Size, uint32(i)})
		}
	}
	slices.SortStableFunc(r.named, func(x, y tensorRange) int { return cmp.Compare(x.addr, y.addr) })
}

// lastTensors returns the named tensors in the order in which their names first appeared. A name that was marked twice
// keeps its last place.
func (r *Recording) lastTensors() []*trace.Tensor {
	index := map[string]int{}
	var out []*trace.Tensor
	for _, t := range r.tensors {
		if k, ok := index[t.Name]; ok {
			out[k] = t
			continue
		}
		index[t.Name] = len(out)
		out = append(out, t)
	}
	return out
}

// blocks is what both runs say about a framework's allocator.
type blocks struct {
	a     []block
	run   *Recording
	equal bool
	spec  *graphir.Spec
}

// divideAllocations marks the allocations that a framework's allocator divides in either run.
func divideAllocations(a, b *Recording, spec *graphir.Spec) *blocks {
	m := &blocks{a: a.blockMap(), run: a, spec: spec}
	mb := b.blockMap()
	m.equal = string(graphir.BlockMapDigest(entries(m.a))) == string(graphir.BlockMapDigest(entries(mb)))
	divided := map[uint32]bool{}
	chains := spec.Chains()
	for _, e := range slices.Concat(m.a, mb) {
		for _, i := range append([]uint32{e.Alloc}, chains[e.Alloc]...) { // a block may begin in the mapping before
			divided[i] = true
			spec.Allocations[i].Divided = true
		}
	}
	a.nameTensors(divided)
	b.nameTensors(divided)
	return m
}

func entries(m []block) []graphir.Block {
	var out []graphir.Block
	for i := range m {
		out = append(out, m[i].Block)
	}
	return out
}

// checkContents refuses saved pointers that would not mean the same online.
func (m *blocks) checkContents() error {
	var err error
	for _, c := range m.spec.Contents {
		for _, f := range c.Fixups {
			if reason := m.problem(f.Pointer); reason != "" && err == nil {
				err = fmt.Errorf("compile saved contents of %s: %s", graphir.Pointer{Alloc: c.Alloc, Space: c.Space}, reason)
			}
		}
	}
	return err
}

// problem says why the pointer cannot be restored, or nothing. It notes the block map where the pointer depends on it.
func (m *blocks) problem(p graphir.Pointer) string {
	if len(m.a) == 0 {
		return ""
	}
	at := p
	if p.Space == graphir.SpaceTensor {
		at = m.spec.Tensors[p.Alloc].At
		at.Offset += p.Offset
	}
	if at.Space != graphir.SpaceAlloc || !m.spec.Allocations[at.Alloc].Divided {
		return ""
	}
	for i := range m.a { // by address: a block may span mappings
		b := &m.a[i]
		if m.run.allocs[at.Alloc].addr+at.Offset-b.addr < b.Size && !b.Live {
			return fmt.Sprintf("it refers to %s, in a block that was free when the capture phase began: a restored start may use it for something else", at)
		}
	}
	if p.Space == graphir.SpaceTensor {
		return ""
	}
	if !m.equal {
		return fmt.Sprintf("it refers to %s, which lies in no named tensor, and the framework's allocator places blocks differently from run to run", at)
	}
	m.spec.BlockMap = graphir.BlockMapDigest(entries(m.a))
	return ""
}
