package materialize

import (
	"errors"
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// Compile makes the graph IR from two recordings of the same start. It fails with a *WordError, a *RefusedError or a
// *SequenceError where the runs do not prove what a restored graph would need.
// A struct's padding that differs is such a word: only a run can settle it (see Run).
func Compile(a, b *Recording) (*graphir.Spec, error) {
	spec, pads, err := compile(a, b)
	if err == nil && len(pads) > 0 {
		return nil, pads[0].cause
	}
	return spec, err
}

// compile returns, beside the IR, the bytes that it presumes to be padding.
func compile(a, b *Recording) (*graphir.Spec, paddings, error) {
	if err := compareSequences(a, b); err != nil {
		return nil, nil, err
	}
	spec := &graphir.Spec{Sequence: a.steps, Region: a.region}
	warmup := a.phaseOrder("warmup", "capture")
	for _, al := range a.allocs {
		owner := graphir.OwnerEngine
		if al.born > warmup {
			owner = graphir.OwnerGraph
		}
		spec.Allocations = append(spec.Allocations, graphir.Allocation{
			Kind: al.kind, Owner: owner, Size: al.size, Live: al.died > a.readyOrder || al.died == noOrder, Address: a.placeOf(al),
		})
	}
	graphsA, graphsB := a.instantiated(), b.instantiated()
	if len(graphsA) != len(graphsB) {
		return nil, nil, fmt.Errorf("compile: %d graphs in run A, %d in run B", len(graphsA), len(graphsB))
	}
	table := &kernelTable{a: a, b: b, spec: spec, modules: map[string]uint32{}, kernels: map[uint32]uint32{},
		late: map[uint32]bool{}, deadline: warmup, maps: &tensorMaps{a.tensorMaps, b.tensorMaps, spec}}
	compileGlobals(table)
	labels := map[string]bool{}
	var pads paddings
	spec.Graphs = make([]graphir.Graph, len(graphsA))
	for i, ga := range graphsA {
		gb, out := graphsB[i], &spec.Graphs[i]
		out.Label, out.Batch, out.InstantiateFlags = ga.Label, ga.Batch, ga.flags
		if out.Label == "" {
			out.Label = fmt.Sprintf("graph-%d", i)
		}
		if ga.Label != gb.Label || ga.Batch != gb.Batch || labels[out.Label] {
			return nil, nil, fmt.Errorf("compile graph %d: label %q (batch %d) in run A, %q (batch %d) in run B: labels must agree and be unique",
				i, ga.Label, ga.Batch, gb.Label, gb.Batch)
		}
		labels[out.Label] = true
		c := &graphCompiler{a: a, b: b, ga: ga, gb: gb, table: table, out: out, label: out.Label, index: i, provers: map[[2]uint64]*prover{}}
		if err := c.compile(); err != nil {
			return nil, nil, err
		}
		pads = append(pads, c.padding...)
	}
	if err := compileEvents(a, b, spec); err != nil {
		return nil, nil, err
	}
	if err := compileContents(a, b, spec, table.maps, table.late); err != nil {
		return nil, nil, err
	}
	if err := compileTensors(a, b, spec); err != nil {
		return nil, nil, err
	}
	if err := checkBlocks(a, spec); err != nil {
		return nil, nil, err
	}
	spec.Triggers = chooseTriggers(spec, table.late)
	return spec, pads, spec.Validate()
}

// instantiated returns the graphs that can be launched. A capture that was never instantiated (or was changed before it
// was, and then recorded again) needs no restoring.
func (r *Recording) instantiated() []*capture {
	var out []*capture
	for _, g := range r.graphs {
		if g.execs > 0 {
			out = append(out, g)
		}
	}
	return out
}

// fillDistinct is MEDUSA_DISTINCT of medusa.h.
const fillDistinct = 1

// SequenceError is the first place where two runs did not allocate and free alike.
type SequenceError struct {
	Step int
	A, B string
}

func (e *SequenceError) Error() string {
	return fmt.Sprintf("compare allocation sequences: step %d: %s in run A, %s in run B (the engine's control flow must repeat)", e.Step, e.A, e.B)
}

// compareSequences demands the same allocations and frees in the same order (paper §3: control flow is deterministic).
func compareSequences(a, b *Recording) error {
	for i := range max(len(a.steps), len(b.steps)) {
		sa, sb := a.describeStep(i), b.describeStep(i)
		if sa != sb {
			return &SequenceError{i, sa, sb}
		}
	}
	return nil
}

func (r *Recording) describeStep(i int) string {
	if i >= len(r.steps) {
		return "nothing"
	}
	s := r.steps[i]
	if s.Free {
		return fmt.Sprintf("free of alloc#%d", s.Alloc)
	}
	al := r.allocs[s.Alloc]
	return fmt.Sprintf("alloc#%d of kind %d, %d bytes", s.Alloc, al.kind, al.size)
}

// compileTensors turns the engine's named tensors into pointers. A name that was marked twice keeps its last place.
func compileTensors(a, b *Recording, spec *graphir.Spec) error {
	if len(a.tensors) != len(b.tensors) {
		return fmt.Errorf("compile tensors: %d marked in run A, %d in run B", len(a.tensors), len(b.tensors))
	}
	la, lb := a.liveAt(a.readyOrder), b.liveAt(b.readyOrder)
	index := map[string]int{}
	for i, ta := range a.tensors {
		tb := b.tensors[i]
		if ta.Name != tb.Name || ta.Size != tb.Size || ta.Role != tb.Role {
			return fmt.Errorf("compile tensor %q: it differs between the runs", ta.Name)
		}
		at, err := tensorPlace(la, lb, ta, tb)
		if err != nil {
			return fmt.Errorf("compile tensor %q: %w", ta.Name, err)
		}
		t := graphir.Tensor{
			Name: ta.Name, Role: graphir.Role(ta.Role), DType: graphir.DType(ta.Dtype), At: at, Size: ta.Size,
			Shape: ta.Shape, Lo: ta.Lo, Hi: ta.Hi, Distinct: ta.Fill == fillDistinct,
		}
		if k, ok := index[t.Name]; ok {
			spec.Tensors[k] = t
			continue
		}
		index[t.Name] = len(spec.Tensors)
		spec.Tensors = append(spec.Tensors, t)
	}
	return nil
}

// tensorPlace resolves a marked address, which is known to be one, to the allocation that holds all its bytes.
func tensorPlace(la, lb *liveSet, ta, tb *trace.Tensor) (graphir.Pointer, error) {
	ra, na := la.resolve(ta.Addr)
	rb, nb := lb.resolve(tb.Addr)
	if na == 0 || nb == 0 || ra[0] != rb[0] {
		return graphir.Pointer{}, errors.New("it lies in no allocation, or not in the same in both runs")
	}
	return ra[0], nil
}
