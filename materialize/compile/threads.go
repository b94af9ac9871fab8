package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// alignThreads gives run B's allocations the indices that they have in run A, if both runs have several threads whose
// own orders repeat. It returns the thread of each allocation, or nil if the total order decides: one thread, or an
// engine that moves its work between threads.
func alignThreads(a, b *run) []uint32 {
	sa, sb := a.threadSteps(), b.threadSteps()
	// mutant: allocations by thread and order, run A with run B
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
		t := a.allocs[i].Thread
		if _, known := roles[t]; !known {
			roles[t] = uint32(len(roles))
		}
		threads[i] = roles[t]
	}
	return threads
}

func (r *run) threadSteps() map[uint32][]graphir.ThreadStep {
	return graphir.ThreadSteps(r.steps, func(alloc uint32) (uint32, graphir.AllocKind, uint64) {
		a := &r.allocs[alloc]
		return a.Thread, a.Kind, a.Size
	})
}

// renumber gives every allocation another index.
func (r *run) renumber(index map[uint32]uint32) {
	allocs := make([]recording.Allocation, len(r.allocs))
	for i := range r.allocs {
		to := index[uint32(i)]
		allocs[to] = r.allocs[i]
		allocs[to].ID = to
	}
	r.allocs, r.timeline = allocs, nil
	for i := range r.steps {
		r.steps[i].Alloc = index[r.steps[i].Alloc]
	}
	for i := range r.contents {
		r.contents[i].Alloc = index[r.contents[i].Alloc]
	}
}

// twins are threads which a restored process could not tell apart: their allocations before the capture phase are alike. Graphs
// must not refer to their memory.
type twins struct {
	spec *graphir.Spec
	of   map[uint32]uint32
}

func findTwins(spec *graphir.Spec) twins {
	t := twins{spec: spec}
	if spec.Threaded() {
		t.of = spec.Twins()
	}
	return t
}

// problem says why the pointer cannot be restored, or nothing.
func (t twins) problem(p graphir.Pointer) string {
	if len(t.of) == 0 {
		return ""
	}
	if p.Space == graphir.SpaceTensor {
		p = t.spec.Tensors[p.Alloc].At
	}
	if p.Space != graphir.SpaceAlloc || t.spec.Allocations[p.Alloc].Owner != graphir.OwnerEngine {
		return ""
	}
	own := t.spec.Allocations[p.Alloc].Thread
	other, ok := t.of[own]
	// mutant: threads that cannot be told apart
	if !ok {
		return ""
	}
	return fmt.Sprintf("it refers to alloc#%d of thread %d, whose allocations are those of thread %d: which is which a restored process could not tell", p.Alloc, own, other)
}
