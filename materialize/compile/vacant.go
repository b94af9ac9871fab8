package compile

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"medusa/graphir"
)

// vacant returns the memory of the engine's suballocated allocations that is or was free: skipped work may have left any bytes there.
func (m *blocks) vacant() []graphir.Vacancy {
	if len(m.spec.BlockMap) == 0 {
		return nil // only tensors are compared there
	}
	begin := m.a.run.extentsAt(m.a.run.PhaseOrder("warmup", "capture"))
	readyA, readyB := m.a.run.extentsAt(m.a.run.ReadyOrder), m.b.run.extentsAt(m.b.run.ReadyOrder)
	var out []graphir.Vacancy
	for i := range m.spec.Allocations {
		if a := &m.spec.Allocations[i]; a.Owner != graphir.OwnerEngine || !a.Suballocated || !a.Live {
			continue
		}
		// mutant: memory that nobody owns in either run
		free := common(m.a.run.freeIn(readyA, i), m.b.run.freeIn(readyB, i))
		first := len(out)
		for _, r := range free {
			out = append(out, graphir.Vacancy{Alloc: uint32(i), Offset: r.Offset, Size: r.Size})
		}
		for _, r := range without(m.a.run.freeIn(begin, i), free) {
			out = append(out, graphir.Vacancy{Alloc: uint32(i), Offset: r.Offset, Size: r.Size, Taken: true})
		}
		slices.SortFunc(out[first:], func(x, y graphir.Vacancy) int { return cmp.Compare(x.Offset, y.Offset) })
	}
	return out
}

// Eager steps leave bytes in the segments of a framework's allocator. In a native start, warm-up leaves them; in a restored start, the
// triggering layers do. No graph refers to memory that was free when the capture phase began. Memory without an owner at ready holds
// another tensor as soon as the engine serves. So neither is compared when the engine is ready (vacant).

// extent is a piece of memory that is part of a block or free, according to the framework's last mark of it.
type extent struct {
	from, to uint64
	live     bool
	order    uint64 // of that mark
}

// extentsAt returns the pieces at a moment, by address. Unlike the blocks of a map, they do not overlap.
func (r *run) extentsAt(moment uint64) []extent {
	var all []extent
	for _, b := range r.Blocks {
		if order := b.Header().Order; order < moment && b.Size > 0 {
			to := b.Addr + b.Size
			if to < b.Addr {
				to = math.MaxUint64
			}
			all = paint(all, extent{b.Addr, to, b.Live != 0, order})
		}
	}
	return all
}

// paint puts a piece over those that it overlaps.
func paint(all []extent, e extent) []extent {
	i := sort.Search(len(all), func(i int) bool { return all[i].to > e.from })
	k := sort.Search(len(all), func(i int) bool { return all[i].from >= e.to })
	k = max(i, k)
	var put []extent
	if i < k && all[i].from < e.from {
		before := all[i]
		before.to = e.from
		put = append(put, before)
	}
	put = append(put, e)
	if i < k && all[k-1].to > e.to {
		after := all[k-1]
		after.from = e.to
		put = append(put, after)
	}
	return slices.Replace(all, i, k, put...)
}

// common returns the bytes that both lists have. Lists are in order.
func common(x, y []graphir.Range) []graphir.Range {
	var out []graphir.Range
	for i, k := 0, 0; i < len(x) && k < len(y); {
		endX, endY := x[i].Offset+x[i].Size, y[k].Offset+y[k].Size
		from, to := max(x[i].Offset, y[k].Offset), min(endX, endY)
		if from < to {
			out = append(out, graphir.Range{Offset: from, Size: to - from})
		}
		if endX < endY {
			i++
		} else {
			k++
		}
	}
	return out
}

// freeIn returns the free bytes of an allocation, as offsets.
func (r *run) freeIn(all []extent, alloc int) []graphir.Range {
	a := &r.allocs[alloc]
	var out []graphir.Range
	for i := sort.Search(len(all), func(i int) bool { return all[i].to > a.Addr }); i < len(all) && all[i].from < a.Addr+a.Size; i++ {
		// mutant: words about memory that was there before
		if e := &all[i]; !e.live && e.order > a.Born {
			from, to := max(e.from, a.Addr), min(e.to, a.Addr+a.Size)
			out = append(out, graphir.Range{Offset: from - a.Addr, Size: to - from})
		}
	}
	return out
}

// without returns the bytes of x that y lacks.
func without(x, y []graphir.Range) []graphir.Range {
	var out []graphir.Range
	for _, r := range x {
		from, to := r.Offset, r.Offset+r.Size
		for _, c := range common([]graphir.Range{r}, y) {
			if from < c.Offset {
				out = append(out, graphir.Range{Offset: from, Size: c.Offset - from})
			}
			from = c.Offset + c.Size
		}
		if from < to {
			out = append(out, graphir.Range{Offset: from, Size: to - from})
		}
	}
	return out
}
