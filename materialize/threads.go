package materialize

import (
	"fmt"

	"medusa/graphir"
)

// alignThreads gives run B's allocations the indices that they have in run A, where both runs have several threads whose
// own orders repeat. It returns the thread of each allocation, or nil where the total order decides: one thread, or an
// engine that moves its work between threads.
func alignThreads(a, b *Recording) []uint32 {
	sa, sb := a.threadSteps(), b.threadSteps()
	if len(sa) < 2 {
		return nil
	}
	index, err := graphir.MatchThreads(sa, sb, nil)
	if err != nil || len(index) != len(a.allocs) || len(a.allocs) != len(b.allocs) {
		return nil
	}
	b.renumber(index)
	threads := make([]uint32, len(a.allocs))
	roles := map[uint32]uint32{}
	for i := range a.allocs {
		t := a.allocs[i].thread
		if _, known := roles[t]; !known {
			roles[t] = uint32(len(roles))
		}
		threads[i] = roles[t]
	}
	return threads
}

func (r *Recording) threadSteps() map[uint32][]graphir.ThreadStep {
	return graphir.ThreadSteps(r.steps, func(alloc uint32) (uint32, graphir.AllocKind, uint64) {
		a := &r.allocs[alloc]
		return a.thread, a.kind, a.size
	})
}

// renumber gives every allocation another index.
func (r *Recording) renumber(index map[uint32]uint32) {
	allocs := make([]allocation, len(r.allocs))
	for i := range r.allocs {
		to := index[uint32(i)]
		allocs[to] = r.allocs[i]
		allocs[to].id = to
	}
	r.allocs = allocs
	for i := range r.steps {
		r.steps[i].Alloc = index[r.steps[i].Alloc]
	}
	for _, c := range r.contents {
		c.Alloc = index[c.Alloc]
	}
}

// checkThreads refuses graphs that refer to memory of threads which a restored process could not tell apart: what they
// allocate before the capture phase is alike.
func checkThreads(spec *graphir.Spec) error {
	if !spec.Threaded() {
		return nil
	}
	twin := spec.Twins()
	var err error
	spec.AllGraphs(func(g *graphir.Graph) {
		for i := range g.Nodes {
			g.Nodes[i].Pointers(func(p graphir.Pointer) {
				if p.Space == graphir.SpaceTensor {
					p = spec.Tensors[p.Alloc].At
				}
				if p.Space != graphir.SpaceAlloc || spec.Allocations[p.Alloc].Owner != graphir.OwnerEngine || err != nil {
					return
				}
				t := spec.Allocations[p.Alloc].Thread
				if other, ok := twin[t]; ok {
					err = &RefusedError{g.Label, i, nodeTypeName(uint32(g.Nodes[i].Type)),
						fmt.Sprintf("it refers to alloc#%d of thread %d, whose allocations are those of thread %d: which is which a restored process could not tell", p.Alloc, t, other)}
				}
			})
		}
	})
	return err
}
