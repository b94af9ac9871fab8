package compile

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// change is memory that came or went.
type change struct {
	order  uint64
	memory int // in timeline.byAddr
	gone   bool
}

// timeline is all memory that a run ever had.
type timeline struct {
	path    string
	byAddr  []*recording.Allocation // and by size if several begin at one address
	addrs   []uint64                // of byAddr
	changes []change                // by order
	host    []trace.HostRange       // the process's own memory, by address
}

func newTimeline(path string, allocs []recording.Allocation, variables []variable, host []trace.HostRange) *timeline {
	t := &timeline{path: path, host: host}
	for i := range allocs {
		t.byAddr = append(t.byAddr, &allocs[i])
	}
	for i := range variables {
		t.byAddr = append(t.byAddr, &variables[i].Allocation)
	}
	slices.SortStableFunc(t.byAddr, func(x, y *recording.Allocation) int {
		return cmp.Or(cmp.Compare(x.Addr, y.Addr), cmp.Compare(x.Size, y.Size))
	})
	for i, a := range t.byAddr {
		t.addrs = append(t.addrs, a.Addr)
		t.changes = append(t.changes, change{a.Born, i, false})
		if a.Died != recording.NoOrder {
			t.changes = append(t.changes, change{a.Died, i, true})
		}
	}
	slices.SortStableFunc(t.changes, func(x, y change) int { return cmp.Compare(x.order, y.order) })
	return t
}

// liveSet is the memory of one run that was live at one moment, by address. It can be moved to another moment.
//
// The moment matters (paper §4.1, Figure 6): an address that was freed and handed out again belongs to the second
// allocation for everything launched after it, and to the first for everything before.
type liveSet struct {
	*timeline
	live       members       // of timeline.byAddr
	done       int           // of timeline.changes
	steps      int           // made by all moves
	named      []tensorRange // by address; addresses inside of them resolve by name
	contiguous neighbours
	overlaps   [][2]int // of timeline.byAddr, found in the last move
	device     span     // of deviceSpan; unset after a move
}

// liveAt returns the memory live just before the record with the given order.
func (r *run) liveAt(order uint64) (*liveSet, error) {
	s := &liveSet{timeline: r.timeline, live: newMembers(len(r.timeline.byAddr))}
	return s, s.moveTo(order)
}

// moveTo moves the set to the moment just before the record with the given order. It takes a step for each change in between.
func (s *liveSet) moveTo(order uint64) error {
	for ; s.done < len(s.changes) && s.changes[s.done].order < order; s.done++ {
		s.step(s.changes[s.done], false)
	}
	for ; s.done > 0 && s.changes[s.done-1].order >= order; s.done-- {
		s.step(s.changes[s.done-1], true)
	}
	for _, pair := range s.overlaps {
		if x, y := s.byAddr[pair[0]], s.byAddr[pair[1]]; s.live.has(pair[0]) && s.live.has(pair[1]) {
			return &recording.Error{Path: s.path, Order: max(x.Born, y.Born), Reason: fmt.Sprintf("%d bytes at %#x: %s#%d lies in %s#%d, which has %d bytes at %#x",
				y.Size, y.Addr, y.Space, y.ID, x.Space, x.ID, x.Size, x.Addr)}
		}
	}
	s.overlaps = nil
	return nil
}

// step makes a change, or undoes it.
func (s *liveSet) step(c change, undo bool) {
	s.steps++
	s.device.set = false
	// mutant: liveness by capture moment
	if c.gone != undo {
		s.live.remove(c.memory)
		s.compare(s.live.before(c.memory), s.live.from(c.memory))
		return
	}
	s.live.add(c.memory)
	s.compare(s.live.before(c.memory), c.memory)
	s.compare(c.memory, s.live.from(c.memory+1))
}

// compare notes neighbours of which one lies inside of the other: a word could lead to either. Two names of a module's variable
// are the same memory, and so is that of another process if it is opened twice. Two threads can seem to have the same memory for
// a moment between two records.
func (s *liveSet) compare(i, k int) {
	if i < 0 || k < 0 {
		return
	}
	x, y := s.byAddr[i], s.byAddr[k]
	twice := x.Addr == y.Addr && x.Space == y.Space && (x.Space == graphir.SpaceGlobal && x.Module == y.Module || x.Kind == graphir.AllocIPC && y.Kind == graphir.AllocIPC)
	// mutant: memory inside of other memory
	if y.Addr-x.Addr < x.Size && !twice {
		s.overlaps = append(s.overlaps, [2]int{i, k})
	}
}

// each visits the memory by address.
func (s *liveSet) each(visit func(*recording.Allocation)) {
	for i := s.live.from(0); i >= 0; i = s.live.from(i + 1) {
		visit(s.byAddr[i])
	}
}

// holding returns the allocation that the byte at addr is in, or nil.
func (s *liveSet) holding(addr uint64) *recording.Allocation {
	i := s.upTo(addr)
	if i < 0 || addr-s.byAddr[i].Addr >= s.byAddr[i].Size {
		return nil
	}
	return s.byAddr[i]
}

// upTo returns the live memory that begins at or below the address, the last of it; -1: there is none.
func (s *liveSet) upTo(addr uint64) int {
	lo, hi := 0, len(s.addrs) // sort.Search takes most of the time of compiling
	for lo < hi {
		// mutant: first byte of memory
		if middle := int(uint(lo+hi) / 2); s.addrs[middle] <= addr {
			lo = middle + 1
		} else {
			hi = middle
		}
	}
	return s.live.before(lo)
}

// span is from the lowest to the highest address that memory reaches.
type span struct {
	lo, hi uint64
	set    bool
}

// span returns the lowest and the highest address any live allocation reaches, to rule out most words at once.
func (s *liveSet) span() (lo, hi uint64) {
	i := s.live.from(0)
	if i < 0 {
		return 1, 0
	}
	last := s.byAddr[s.live.before(len(s.byAddr))]
	return s.byAddr[i].Addr, last.Addr + last.Size
}

// nodeMoment returns when the node's pointers have to be resolved: at the end of its capture, or, if memory was freed
// while that capture was still open, just before the first free that came after the node.
func nodeMoment(g *recording.Body, node uint64) uint64 {
	// mutant: liveness inside an open capture
	if at, ok := g.Moments[node]; ok {
		return at
	}
	return g.Order
}

// resolve lists the meanings that the address can have: a byte inside an allocation, the end of the one before it, or
// both if two allocations touch. If these are mappings side by side in every process, both are the same byte.
func (s *liveSet) resolve(addr uint64) (out [2]graphir.Pointer, n int) {
	// mutant: end of a named tensor
	if k := sort.Search(len(s.named), func(i int) bool { return s.named[i].addr > addr }) - 1; k >= 0 && addr-s.named[k].addr < s.named[k].size {
		return [2]graphir.Pointer{{Index: s.named[k].index, Offset: addr - s.named[k].addr, Space: graphir.SpaceTensor}}, 1
	}
	k := s.upTo(addr)
	if k < 0 {
		return out, 0
	}
	last := s.byAddr[k]
	// mutant: pointer into the middle of an allocation
	if addr-last.Addr <= last.Size {
		// mutant: pointers beyond 4 GiB of their memory
		out[0], n = graphir.Pointer{Index: last.ID, Offset: addr - last.Addr, Space: last.Space}, 1
	}
	if addr != last.Addr && (k == 0 || s.addrs[k-1] != last.Addr) {
		return out, n // allocations before it end before the address
	}
	if k = s.live.before(k); k < 0 {
		return out, n
	}
	// mutant: boundary of two mappings
	if a := s.byAddr[k]; addr-a.Addr <= a.Size && !(n == 1 && s.follows(last, a)) {
		out[n] = graphir.Pointer{Index: a.ID, Offset: addr - a.Addr, Space: a.Space}
		n++
	}
	return out, n
}

// follows reports whether x is a mapping that lies directly behind y in every process.
func (s *liveSet) follows(x, y *recording.Allocation) bool {
	at, ok := s.contiguous[x.ID]
	return ok && at == y.ID && x.Space == graphir.SpaceAlloc && y.Space == graphir.SpaceAlloc
}

// oneModule reports whether two variables of one module touch at the address. No recording moves them apart, and none has
// to: the image places them alike in every process, so the end of the one is the first byte of the other.
func (s *liveSet) oneModule(addr uint64) bool {
	i := s.upTo(addr)
	k := s.live.before(max(i, 0))
	if k < 0 {
		return false
	}
	x, y := s.byAddr[i], s.byAddr[k]
	// mutant: variables of one module that touch
	return x.Space == graphir.SpaceGlobal && y.Space == graphir.SpaceGlobal && x.Module == y.Module
}

// inHost reports whether an address is one of the process's own memory.
func (t *timeline) inHost(addr uint64) bool {
	i := sort.Search(len(t.host), func(i int) bool { return t.host[i].Addr > addr })
	return i > 0 && addr-t.host[i-1].Addr < t.host[i-1].Size
}

// deviceSpan is span without page-locked memory, which lies among the host's own.
func (s *liveSet) deviceSpan() (lo, hi uint64) {
	if s.device.set {
		return s.device.lo, s.device.hi
	}
	lo = ^uint64(0)
	s.each(func(a *recording.Allocation) {
		// mutant: page-locked memory is not device memory
		if a.Kind != graphir.AllocPinned && a.Kind != graphir.AllocRegistered {
			lo, hi = min(lo, a.Addr), max(hi, a.Addr+a.Size)
		}
	})
	s.device = span{lo, hi, true}
	return lo, hi
}
