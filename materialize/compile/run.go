package compile

import (
	"slices"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// run is a recording with the numbers that both runs have in common: allocation i, and variable i, are the same in both. It does not
// change once it is made.
type run struct {
	*recording.Recording
	allocs    []recording.Allocation // by number
	index     allocationIndex
	steps     []graphir.Step
	variables []variable // in the order of the recording
	byNumber  []int      // variables by their number
	timeline  *timeline
}

// variable is a module's; its ID is its number.
type variable struct {
	recording.Global
	ambiguous bool // another loaded module has the same identity: nothing tells online which one was meant
}

// newRun numbers a recording's allocations by an index, if there is one, and its variables by names.
func newRun(r *recording.Recording, index allocationIndex, numbers variableNumbers) *run {
	out := &run{Recording: r, allocs: r.Allocs, index: index, steps: r.Steps}
	if index != nil {
		out.allocs, out.steps = make([]recording.Allocation, len(r.Allocs)), slices.Clone(r.Steps)
		for i, a := range r.Allocs {
			a.ID = out.number(uint32(i))
			out.allocs[a.ID] = a
		}
		for i := range out.steps {
			out.steps[i].Alloc = out.number(out.steps[i].Alloc)
		}
	}
	out.variables, out.byNumber = numbers.of(r)
	out.timeline = newTimeline(r.Path, out.allocs, out.variables)
	return out
}

// number returns the number of an allocation that the recording knows by another.
func (r *run) number(recorded uint32) uint32 {
	if r.index == nil {
		return recorded
	}
	return r.index[recorded]
}

// variable returns the variable with a number; if its module was loaded again, the last of them.
func (r *run) variable(number uint32) *variable {
	if int64(number) >= int64(len(r.byNumber)) || r.byNumber[number] < 0 {
		return &variable{}
	}
	return &r.variables[r.byNumber[number]]
}

// addresses says what the addresses of a run mean, beyond the allocations that they lie in.
type addresses struct {
	*run
	named      []tensorRange // tensors in suballocated memory, by address
	contiguous neighbours
}

// liveAt returns the memory live just before the record with the given order.
func (x addresses) liveAt(order uint64) (*liveSet, error) {
	s, err := x.run.liveAt(order)
	if err == nil {
		s.named, s.contiguous = x.named, x.contiguous
	}
	return s, err
}
