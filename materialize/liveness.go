package materialize

import (
	"sort"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// liveSet holds the allocations of one run that were live at one moment, by address.
//
// The moment matters (paper §4.1, Figure 6): an address that was freed and handed out again belongs to the second
// allocation for everything launched after it, and to the first for everything before.
type liveSet struct {
	byAddr []*allocation
	named  []tensorRange // by address; what lies in them resolves by name
	joined map[uint32]uint32
}

// liveAt returns the allocations live just before the record with the given order.
func (r *Recording) liveAt(order uint64) *liveSet {
	s := &liveSet{named: r.named, joined: r.joined}
	for i := range r.allocs {
		if a := &r.allocs[i]; a.born < order && order <= a.died {
			s.byAddr = append(s.byAddr, a)
		}
	}
	for i := range r.globals {
		if g := &r.globals[i].allocation; g.born < order && order <= g.died {
			s.byAddr = append(s.byAddr, g)
		}
	}
	sort.Slice(s.byAddr, func(i, j int) bool { return s.byAddr[i].addr < s.byAddr[j].addr })
	return s
}

// resolve lists what the address may mean: a byte inside an allocation, the end of the one before it, or both where
// two allocations touch. Where these are mappings side by side in every process, both are the same byte.
func (s *liveSet) resolve(addr uint64) (out [2]graphir.Pointer, n int) {
	if k := sort.Search(len(s.named), func(i int) bool { return s.named[i].addr > addr }) - 1; k >= 0 && addr-s.named[k].addr < s.named[k].size {
		return [2]graphir.Pointer{{Alloc: s.named[k].index, Offset: addr - s.named[k].addr, Space: graphir.SpaceTensor}}, 1
	}
	i := sort.Search(len(s.byAddr), func(i int) bool { return s.byAddr[i].addr > addr })
	for _, k := range [2]int{i - 1, i - 2} {
		if k < 0 {
			break
		}
		a := s.byAddr[k]
		if n == 1 && s.behind(s.byAddr[k+1], a) {
			break
		}
		if addr-a.addr <= a.size {
			out[n] = graphir.Pointer{Alloc: a.id, Offset: addr - a.addr, Space: a.space}
			n++
		}
	}
	return out, n
}

// behind reports whether x is a mapping that lies directly behind y in every process.
func (s *liveSet) behind(x, y *allocation) bool {
	at, ok := s.joined[x.id]
	return ok && at == y.id && x.space == graphir.SpaceAlloc && y.space == graphir.SpaceAlloc
}

// oneModule reports whether two variables of one module touch at the address. No recording moves them apart, and none has
// to: the image places them alike in every process, so the end of the one is the first byte of the other.
func (s *liveSet) oneModule(addr uint64) bool {
	i := sort.Search(len(s.byAddr), func(i int) bool { return s.byAddr[i].addr > addr })
	if i < 2 {
		return false
	}
	x, y := s.byAddr[i-1], s.byAddr[i-2]
	return x.space == graphir.SpaceGlobal && y.space == graphir.SpaceGlobal && x.module == y.module
}

// holding returns the allocation that the byte at addr is in, or nil.
func (s *liveSet) holding(addr uint64) *allocation {
	i := sort.Search(len(s.byAddr), func(i int) bool { return s.byAddr[i].addr > addr }) - 1
	if i < 0 || addr-s.byAddr[i].addr >= s.byAddr[i].size {
		return nil
	}
	return s.byAddr[i]
}

// span returns the lowest and the highest address any live allocation reaches, to rule out most words at once.
func (s *liveSet) span() (lo, hi uint64) {
	if len(s.byAddr) == 0 {
		return 1, 0
	}
	last := s.byAddr[len(s.byAddr)-1]
	return s.byAddr[0].addr, last.addr + last.size
}

// deviceSpan is span without page-locked memory, which lies among the host's own.
func (s *liveSet) deviceSpan() (lo, hi uint64) {
	lo = ^uint64(0)
	for _, a := range s.byAddr {
		if a.kind != graphir.AllocPinned && a.kind != graphir.AllocRegistered {
			lo, hi = min(lo, a.addr), max(hi, a.addr+a.size)
		}
	}
	return lo, hi
}

// nodeMoment returns when the node's pointers have to be resolved: at the end of its capture, or, where memory was freed
// while that capture was still open, just before the first free that came after the node.
func (g *capture) nodeMoment(node uint64) uint64 {
	if at, ok := g.moments[node]; ok {
		return at
	}
	return g.order
}

// nodeHandle returns the node's handle in the recorded process.
func nodeHandle(rec trace.Record) uint64 {
	switch v := rec.(type) {
	case *trace.Kernel:
		return v.Node
	case *trace.Memset:
		return v.Node
	case *trace.Memcpy:
		return v.Node
	case *trace.Empty:
		return v.Node
	case *trace.Opaque:
		return v.Node
	case *trace.EventNode:
		return v.Node
	case *trace.Child:
		return v.Node
	}
	return 0
}
