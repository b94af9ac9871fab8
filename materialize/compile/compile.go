package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// Compile makes the graph IR from two recordings of the same start, and returns the bytes that it presumes to be padding: only a run can
// decide about those. It fails with a *WordError, a *RefusedError or a *SequenceError if the runs do not prove the facts that a restored
// graph would need, and for a process with several devices. Row groups of many graphs go to scratch; if it is nil, they stay in memory.
//
// Each pass fills its part of the Spec. None changes a recording.
func Compile(ra, rb *recording.Recording, scratch graphir.Storage) (*graphir.Spec, Paddings, error) {
	spec := &graphir.Spec{}
	for _, r := range []*recording.Recording{ra, rb} {
		// mutant: memory on several devices
		if r.Beside != nil {
			return nil, nil, fmt.Errorf("compile recording %s: the process has memory or modules on devices %d and %d (a rank has one: start a process for each)",
				r.Path, r.Device.Ordinal, r.Beside.Ordinal)
		}
	}

	// Allocation i and variable i are the same in both runs from here on.
	a, b, threads, err := number(ra, rb)
	if err != nil {
		return nil, nil, err
	}
	deadline := a.PhaseOrder("warmup", "capture")
	spec.Sequence, spec.Region, spec.Allocations = a.steps, a.Region, allocations(a, threads, deadline)

	// Meanings of addresses.
	contiguous, err := findContiguous(a, b)
	if err != nil {
		return nil, nil, err
	}
	contiguous.note(spec.Allocations)
	blocks, err := compareBlocks(a, b, spec)
	if err != nil {
		return nil, nil, err
	}
	meansA, meansB := addresses{a, blocks.a.named, contiguous}, addresses{b, blocks.b.named, contiguous}

	// Kernels, variables, tensors and notes: they have names.
	kernels := newKernelTable(a, b, spec, deadline)
	spec.Globals = compileVariables(kernels, a)
	if spec.Tensors, err = compileTensors(a, b, spec.Allocations); err != nil {
		return nil, nil, err
	}
	if spec.Notes, err = compileNotes(ra.Notes, rb.Notes); err != nil {
		return nil, nil, err
	}

	// The graphs, and the objects that they refer to.
	maps := &tensorMaps{a.TensorMaps, b.TensorMaps, spec}
	prover, err := proverAt(meansA, meansB, 0, 0, maps)
	if err != nil {
		return nil, nil, err
	}
	prover.blocks = blocks
	seen := newUses(spec, kernels.late, blocks)
	pads, err := compileGraphs(&shared{a: a, b: b, spec: spec, kernels: kernels, prover: prover, contiguous: contiguous, deadline: deadline}, scratch, seen)
	if err != nil {
		return nil, nil, err
	}
	if spec.Events, err = compileEvents(a, b, seen.events); err != nil {
		return nil, nil, err
	}
	if err := compileContents(meansA, meansB, spec, maps, seen); err != nil {
		return nil, nil, err
	}
	if err := blocks.checkContents(); err != nil {
		return nil, nil, err
	}
	spec.Vacant = blocks.vacant()
	spec.Triggers = chooseTriggers(seen.candidates)
	return spec, pads, spec.Validate()
}

// number gives allocations and variables of both runs their numbers: record-a's own, if the order of all or of each thread repeats.
func number(ra, rb *recording.Recording) (a, b *run, threads []uint32, err error) {
	variables := numberVariables(ra, rb)
	if threads, index := alignThreads(ra, rb); threads != nil {
		own := numbered(ra, nil)
		return newRun(ra, own, variables), newRun(rb, numbering{index, len(rb.Allocs)}, variables), threads, nil
	}
	left, err := alignPinned(ra, rb)
	if err != nil {
		return nil, nil, nil, err
	}
	return newRun(ra, numbered(ra, left), variables), newRun(rb, numbered(rb, left), variables), nil, nil
}

// allocations lists record-a's memory. Memory that is allocated after the deadline belongs to the graphs.
func allocations(a *run, threads []uint32, deadline uint64) []graphir.Allocation {
	out := make([]graphir.Allocation, a.kept)
	for i, al := range a.allocs[:a.kept] {
		out[i] = graphir.Allocation{Kind: al.Kind, Owner: graphir.OwnerEngine, Size: al.Size, Address: a.placeOf(al),
			Live: al.Died > a.ReadyOrder || al.Died == recording.NoOrder}
		if threads != nil {
			out[i].Thread = threads[i]
		}
		if al.Born > deadline {
			out[i].Owner = graphir.OwnerGraph
		}
	}
	return out
}
