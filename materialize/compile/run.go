package compile

import (
	"slices"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// moduleVariable is known by the identity of its module, and by name.
type moduleVariable struct{ module, name string }

// variableNumbers number the variables of both runs alike, by module and name.
type variableNumbers map[moduleVariable]uint32

func numberVariables(runs ...*recording.Recording) variableNumbers {
	numbers := variableNumbers{}
	for _, r := range runs {
		for _, g := range r.Globals {
			key := moduleVariable{r.Modules[g.Module].IdentityKey(), g.Name}
			if _, found := numbers[key]; !found {
				numbers[key] = uint32(len(numbers))
			}
		}
	}
	return numbers
}

// run is a recording with the numbers that both runs have in common: allocation i, and variable i, are the same in both. It does not
// change once it is made.
type run struct {
	*recording.Recording
	numbering
	allocs    []recording.Allocation // by number
	steps     []graphir.Step
	variables []variable // in the order of the recording
	byNumber  []int      // variables by their number
	timeline  *timeline
}

// newRun numbers a recording's allocations, and its variables by names.
func newRun(r *recording.Recording, n numbering, numbers variableNumbers) *run {
	out := &run{Recording: r, numbering: n, allocs: r.Allocs, steps: n.sequence(r)}
	if n.index != nil {
		out.allocs = make([]recording.Allocation, n.size(r))
		for i, a := range r.Allocs {
			a.ID = n.number(uint32(i))
			out.allocs[a.ID] = a
		}
	}
	out.variables, out.byNumber = numbers.of(r)
	out.timeline = newTimeline(r.Path, out.allocs, out.variables, r.Host)
	return out
}

// variable is a module's; its ID is its number.
type variable struct {
	recording.Global
	ambiguous bool // another loaded module has the same identity: a restored process cannot tell them apart
}

// of returns the variables of a recording with their numbers, and their places by number, or -1.
func (numbers variableNumbers) of(r *recording.Recording) (variables []variable, byNumber []int) {
	loaded := map[string]int{}
	for _, m := range r.Modules {
		if m.Unloaded == recording.NoOrder {
			loaded[m.IdentityKey()]++
		}
	}
	byNumber = slices.Repeat([]int{-1}, len(numbers))
	for i, g := range r.Globals {
		key := moduleVariable{r.Modules[g.Module].IdentityKey(), g.Name}
		g.ID = numbers[key]
		byNumber[g.ID] = i
		// mutant: image loaded twice
		variables = append(variables, variable{g, loaded[key.module] > 1})
	}
	return variables, byNumber
}

// placeOf returns the allocation's address if it lay in the region. Only memory whose place repeats counts.
func (r *run) placeOf(a recording.Allocation) uint64 {
	switch a.Kind {
	case graphir.AllocDevice, graphir.AllocPitch, graphir.AllocVMM:
		if r.Region.Contains(a.Addr, a.Size) {
			return a.Addr
		}
	}
	return 0
}

// compileVariables lists record-a's variables, by number.
func compileVariables(kernels *kernelTable, a *run) []graphir.Global {
	var out []graphir.Global
	for _, v := range a.variables {
		if int(v.ID) == len(out) { // the first with this number
			out = append(out, graphir.Global{Module: kernels.module(a.Modules[v.Module]), Name: v.Name, Size: v.Size})
		}
	}
	return out
}

// addresses is a run with the named tensors and contiguous mappings, which give addresses a meaning beyond their allocations.
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

// variable returns the variable with a number; if its module was loaded again, the last of them.
func (r *run) variable(number uint32) *variable {
	if int64(number) >= int64(len(r.byNumber)) || r.byNumber[number] < 0 {
		return &variable{}
	}
	return &r.variables[r.byNumber[number]]
}
