package compile

import (
	"slices"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// run is a recording as compiling looks at it: with the numbers that both runs have in common.
type run struct {
	*recording.Recording
	allocs   []recording.Allocation
	steps    []graphir.Step
	contents []recording.Saved
	globals  []global
	byIndex  []int             // globals by their index in the spec
	timeline *timeline         // made when it is first needed
	named    []tensorRange     // tensors in divided allocations
	joined   map[uint32]uint32 // the mapping that a mapping lies directly behind
}

// global is a module variable with its index in the spec.
type global struct {
	recording.Global
	ambiguous bool // another loaded module has the same identity: nothing tells online which one was meant
}

func newRun(r *recording.Recording) *run {
	out := &run{Recording: r, allocs: slices.Clone(r.Allocs), steps: slices.Clone(r.Steps), contents: slices.Clone(r.Contents)}
	for _, g := range r.Globals {
		out.globals = append(out.globals, global{Global: g})
	}
	return out
}
