package compile

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// tensorRange is a named tensor that lies in a suballocated allocation.
type tensorRange struct {
	addr, size uint64
	index      uint32 // in Spec.Tensors
}

// blockMaps has those of one run.
type blockMaps struct {
	run          *run
	begin, ready blockIndex    // when the capture phase began, and when the engine was ready
	named        []tensorRange // tensors in suballocated allocations
}

// blocks has the block maps of a framework's allocator in both runs.
type blocks struct {
	a, b   blockMaps
	equal  bool   // the maps, when the capture phase began
	digest []byte // of record-a's map then
	spec   *graphir.Spec
}

// compareBlocks marks the allocations that a framework's allocator suballocates in either run.
func compareBlocks(a, b *run, spec *graphir.Spec) (*blocks, error) {
	m := &blocks{spec: spec}
	var err error
	if m.a, err = a.blockMaps(); err != nil {
		return nil, err
	}
	if m.b, err = b.blockMaps(); err != nil {
		return nil, err
	}
	m.digest = graphir.BlockMapDigest(entries(m.a.begin.blocks))
	m.equal = bytes.Equal(m.digest, graphir.BlockMapDigest(entries(m.b.begin.blocks)))
	suballocated := map[uint32]bool{}
	chains := spec.Contiguous()
	for _, e := range slices.Concat(m.a.begin.blocks, m.b.begin.blocks) {
		if suballocated[e.Alloc] {
			continue
		}
		// mutant: block that begins in the mapping before
		for _, i := range append([]uint32{e.Alloc}, chains[e.Alloc]...) { // a block may begin in the mapping before
			suballocated[i] = true
			spec.Allocations[i].Suballocated = true
		}
	}
	if m.a.named, err = a.tensorsIn(suballocated); err != nil {
		return nil, err
	}
	m.b.named, err = b.tensorsIn(suballocated)
	return m, err
}

func (r *run) blockMaps() (blockMaps, error) {
	begin, err := r.blockMap(r.PhaseOrder("warmup", "capture"))
	if err != nil {
		return blockMaps{}, err
	}
	ready, err := r.blockMap(r.ReadyOrder)
	return blockMaps{run: r, begin: indexBlocks(begin), ready: indexBlocks(ready)}, err
}

// A framework's allocator places tensors inside of driver allocations, and a process that repeats those need not place
// tensors alike (PyTorch breaks ties by address). So a pointer into a suballocated allocation resolves by the name of the
// tensor it leads into. If it leads into none, index and offset hold only if the allocator's block map at the start of the
// capture phase was the same in both runs, and they hold online only if it is the same again. A pointer into a block that was
// free when the capture phase began is refused: online, it may have another owner. Inside of a by-value struct it may be an
// old address in padding, and check-restored decides (padding.go).

// block is one entry of a framework's block map.
type block struct {
	graphir.Block
	addr uint64
}

// blockMap returns the blocks inside allocations at a moment, by (allocation, offset).
func (r *run) blockMap(moment uint64) ([]block, error) {
	last := map[uint64]*trace.Block{}
	for _, b := range r.Blocks {
		if b.Header().Order < moment {
			last[b.Addr] = b
		}
	}
	live, err := r.liveAt(moment)
	if err != nil {
		return nil, err
	}
	var m []block
	for _, b := range last {
		if a := live.holding(b.Addr); a != nil && a.Space == graphir.SpaceAlloc {
			m = append(m, block{graphir.Block{Alloc: a.ID, Offset: b.Addr - a.Addr, Size: b.Size, Live: b.Live != 0}, b.Addr})
		}
	}
	slices.SortFunc(m, func(x, y block) int { return cmp.Compare(x.addr, y.addr) })
	return m, nil
}

// blockIndex finds the blocks of a map by address.
type blockIndex struct {
	blocks      []block // by address
	live, freed reach
}

func indexBlocks(blocks []block) blockIndex {
	x := blockIndex{blocks: blocks}
	for i := range blocks {
		to := &x.freed
		if blocks[i].Live {
			to = &x.live
		}
		end := blocks[i].addr + blocks[i].Size
		if end < blocks[i].addr {
			end = math.MaxUint64
		}
		if n := len(*to); n > 0 {
			end = max(end, (*to)[n-1].end)
		}
		*to = append(*to, struct{ addr, end uint64 }{blocks[i].addr, end})
	}
	return x
}

func entries(m []block) []graphir.Block {
	var out []graphir.Block
	for i := range m {
		out = append(out, m[i].Block)
	}
	return out
}

// tensorsIn returns the named tensors that lie in the given allocations.
func (r *run) tensorsIn(suballocated map[uint32]bool) ([]tensorRange, error) {
	live, err := r.liveAt(r.ReadyOrder)
	if err != nil {
		return nil, err
	}
	var named []tensorRange
	for i, t := range r.lastTensors() {
		if a := live.holding(t.Addr); a != nil && a.Space == graphir.SpaceAlloc && suballocated[a.ID] {
			named = append(named, tensorRange{t.Addr, t.Size, uint32(i)})
		}
	}
	slices.SortStableFunc(named, func(x, y tensorRange) int { return cmp.Compare(x.addr, y.addr) })
	return named, nil
}

// lastTensors returns the named tensors in the order in which their names first appeared. A name that was marked twice
// keeps its last place.
func (r *run) lastTensors() []*trace.Tensor {
	index := map[string]int{}
	var out []*trace.Tensor
	for _, t := range r.Tensors {
		if k, ok := index[t.Name]; ok {
			out[k] = t
			continue
		}
		index[t.Name] = len(out)
		out = append(out, t)
	}
	return out
}

// leftover returns the reason why the pointer is most likely an old address that earlier code left, or "": in both runs it leads into free memory. An engine's own
// memory of the capture phase has an owner at ready, or a tensor's name. The native graph could not follow an address of memory that was freed.
func (m *blocks) leftover(p graphir.Pointer) string {
	if p.Space != graphir.SpaceAlloc {
		return ""
	}
	switch in := &m.spec.Allocations[p.Index]; {
	case !in.Live: // mutant: old address of memory that was freed
		return "which was freed before the engine was ready"
	case in.Suballocated && m.a.ownerless(p) && m.b.ownerless(p):
		return "in a block that was free when the capture phase began and at ready"
	}
	return ""
}

// target is the pointer of an old address, if a restored start has the memory.
func (m *blocks) target(p graphir.Pointer) *graphir.Pointer {
	if !m.spec.Allocations[p.Index].Live {
		return nil
	}
	return &p
}

// ownerless reports whether the memory was free when the capture phase began and had no owner when the engine was ready.
func (m *blockMaps) ownerless(p graphir.Pointer) bool {
	addr := m.address(p)
	// mutant: memory of the capture phase in a block that was free
	return m.begin.freed.holds(addr) && !m.begin.live.holds(addr) && !m.ready.live.holds(addr)
}

// address is the target of a pointer in this run. A block may span mappings.
func (m *blockMaps) address(p graphir.Pointer) uint64 { return m.run.allocs[p.Index].Addr + p.Offset }

// reach is how far blocks of one kind reach, by their begin. Blocks may overlap: a block that a framework marked once may lie in one that
// it marked later.
type reach []struct{ addr, end uint64 }

func (r reach) holds(addr uint64) bool {
	i := sort.Search(len(r), func(i int) bool { return r[i].addr > addr }) - 1
	return i >= 0 && addr < r[i].end
}

// problem returns the reason why the pointer cannot be restored, or "". It notes the block map if the pointer depends on it.
func (m *blocks) problem(p graphir.Pointer) string {
	if len(m.a.begin.blocks) == 0 {
		return ""
	}
	at := p
	if p.Space == graphir.SpaceTensor {
		at = m.spec.Tensors[p.Index].At
		at.Offset += p.Offset
	}
	if at.Space != graphir.SpaceAlloc || !m.spec.Allocations[at.Index].Suballocated {
		return ""
	}
	// mutant: block that was free at the start of capture
	if m.a.begin.freed.holds(m.a.address(at)) {
		return fmt.Sprintf("it refers to %s, in a block that was free when the capture phase began: a restored start may use it for something else", at)
	}
	if p.Space == graphir.SpaceTensor {
		return ""
	}
	// mutant: block map, record-a with record-b
	if !m.equal {
		return fmt.Sprintf("it refers to %s, which lies in no named tensor, and the framework's allocator places blocks differently from run to run", at)
	}
	// mutant: block map hashed once
	m.spec.BlockMap = m.digest
	return ""
}

// checkContents refuses saved pointers that would not mean the same online.
func (m *blocks) checkContents() error {
	var err error
	for _, c := range m.spec.Contents {
		for _, f := range c.Relocations {
			if reason := m.problem(f.Pointer); reason != "" && err == nil {
				err = fmt.Errorf("compile saved contents of %s: %s", graphir.Pointer{Index: c.Alloc, Space: c.Space}, reason)
			}
		}
	}
	return err
}
