package compile

import (
	"errors"
	"fmt"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// Compile makes the graph IR from two recordings of the same start, and says which bytes it presumes to be padding: only a run
// can settle those. It fails with a *WordError, a *RefusedError or a *SequenceError if the runs do not prove the facts that a restored graph
// would need. Row groups of many graphs go to scratch; if it is nil, they stay in memory.
func Compile(ra, rb *recording.Recording, scratch graphir.Storage) (*graphir.Spec, Paddings, error) {
	a, b := newRun(ra), newRun(rb)
	threads := alignThreads(a, b)
	if threads == nil {
		if err := compareSequences(a, b); err != nil {
			return nil, nil, err
		}
	}
	spec := &graphir.Spec{Sequence: a.steps, Region: a.Region}
	warmup := a.PhaseOrder("warmup", "capture")
	for i, al := range a.allocs {
		owner, thread := graphir.OwnerEngine, uint32(0)
		if threads != nil {
			thread = threads[i]
		}
		if al.Born > warmup {
			owner = graphir.OwnerGraph
		}
		spec.Allocations = append(spec.Allocations, graphir.Allocation{
			Kind: al.Kind, Owner: owner, Size: al.Size, Live: al.Died > a.ReadyOrder || al.Died == recording.NoOrder, Address: a.placeOf(al), Thread: thread,
		})
	}
	if err := chainMappings(a, b, spec); err != nil {
		return nil, nil, err
	}
	division, err := divideAllocations(a, b, spec)
	if err != nil {
		return nil, nil, err
	}
	graphsA, graphsB := a.instantiated(), b.instantiated()
	if len(graphsA) != len(graphsB) {
		return nil, nil, fmt.Errorf("compile: %d graphs in run A, %d in run B", len(graphsA), len(graphsB))
	}
	table := &kernelTable{a: a, b: b, spec: spec, modules: map[string]uint32{}, kernels: map[uint32]uint32{},
		late: map[uint32]bool{}, deadline: warmup, blocks: division, maps: &tensorMaps{a.TensorMaps, b.TensorMaps, spec}}
	compileGlobals(table)
	if err := compileTensors(a, b, spec); err != nil {
		return nil, nil, err
	}
	if err := compileNotes(a, b, spec); err != nil {
		return nil, nil, err
	}
	pads, seen, err := compileGraphs(table, scratch, graphsA, graphsB, newUses(spec, table.late, division))
	if err != nil {
		return nil, nil, err
	}
	if err := compileEvents(a, b, spec, seen.events); err != nil {
		return nil, nil, err
	}
	if err := compileContents(a, b, spec, table.maps, seen); err != nil {
		return nil, nil, err
	}
	if err := division.checkContents(); err != nil {
		return nil, nil, err
	}
	spec.Triggers = chooseTriggers(seen.candidates)
	return spec, pads, spec.Validate()
}

// compileGraphs compiles the graphs of both runs, read together one by one, into the Spec: each is encoded as soon as there
// are many of them.
func compileGraphs(table *kernelTable, scratch graphir.Storage, graphsA, graphsB []*recording.Capture, seen *uses) (pads Paddings, _ *uses, err error) {
	a, b, spec := table.a, table.b, table.spec
	walkA, err := a.Walk()
	if err != nil {
		return nil, nil, err
	}
	defer walkA.Close()
	walkB, err := b.Walk()
	if err != nil {
		return nil, nil, err
	}
	defer walkB.Close()
	w := graphir.NewWriter(scratch)
	if table.prover, err = proverAt(a, b, 0, 0, table.maps); err != nil {
		return nil, nil, err
	}
	table.prover.blocks = table.blocks
	labels := map[string]bool{}
	for i, ga := range graphsA {
		gb, out := graphsB[i], &graphir.Graph{}
		if err := errors.Join(walkA.To(ga), walkB.To(gb)); err != nil {
			return nil, nil, err
		}
		out.Label, out.Batch, out.InstantiateFlags = ga.Label, ga.Batch, ga.InstantiateFlags
		if out.Label == "" {
			out.Label = fmt.Sprintf("graph-%d", i)
		}
		if ga.Label != gb.Label || ga.Batch != gb.Batch || labels[out.Label] {
			return nil, nil, fmt.Errorf("compile graph %d: label %q (batch %d) in run A, %q (batch %d) in run B: labels must agree and be unique",
				i, ga.Label, ga.Batch, gb.Label, gb.Batch)
		}
		labels[out.Label] = true
		c := &graphCompiler{a: a, b: b, ga: ga, gb: gb, table: table, out: out, label: out.Label, index: i}
		if err := c.compile(); err != nil {
			return nil, nil, err
		}
		pads = append(pads, c.padding...)
		if err := seen.add(out); err != nil {
			return nil, nil, err
		}
		if err := w.Add(out); err != nil {
			return nil, nil, err
		}
	}
	return pads, seen, w.Finish(spec)
}

// instantiated returns the graphs that can be launched. A capture that was never instantiated (or was changed before it
// was, and then recorded again) needs no restoring. Graphs from before the phases that a restored start skips are the
// engine's own: it captures them there, too.
func (r *run) instantiated() []*recording.Capture {
	begin := r.PhaseOrder("warmup", "capture")
	var out []*recording.Capture
	for _, g := range r.Graphs {
		// mutant: graphs that the engine captures in every start
		if g.Execs > 0 && (g.Order > begin || begin == recording.NoOrder) {
			out = append(out, g)
		}
	}
	return out
}

// SequenceError is the first place where two runs did not allocate and free alike, neither in all nor by thread. The
// stacks are those of the calls (of a free: of its allocation), as far as they were recorded.
type SequenceError struct {
	Step           int
	A, B           string
	StackA, StackB string
}

func (e *SequenceError) Error() string {
	return fmt.Sprintf("compare allocation sequences: step %d: %s in run A (called from %s), %s in run B (called from %s); the engine's control flow must repeat, in all or by thread",
		e.Step, e.A, e.StackA, e.B, e.StackB)
}

// compareSequences demands the same allocations and frees in the same order (paper §3: control flow is deterministic).
func compareSequences(a, b *run) error {
	for i := range max(len(a.steps), len(b.steps)) {
		sa, sb := a.describeStep(i), b.describeStep(i)
		if sa != sb {
			return &SequenceError{i, sa, sb, a.stackOf(i), b.stackOf(i)}
		}
	}
	return nil
}

func (r *run) stackOf(step int) string {
	if step >= len(r.steps) || r.allocs[r.steps[step].Alloc].Stack == "" {
		return "nobody knows where"
	}
	return r.allocs[r.steps[step].Alloc].Stack
}

func (r *run) describeStep(i int) string {
	if i >= len(r.steps) {
		return "nothing"
	}
	s := r.steps[i]
	if s.Free {
		return fmt.Sprintf("free of alloc#%d", s.Alloc)
	}
	al := r.allocs[s.Alloc]
	return fmt.Sprintf("alloc#%d of kind %d, %d bytes", s.Alloc, al.Kind, al.Size)
}

// compileTensors turns the engine's named tensors into pointers.
func compileTensors(a, b *run, spec *graphir.Spec) error {
	ta, tb := a.lastTensors(), b.lastTensors()
	if len(ta) != len(tb) {
		return fmt.Errorf("compile tensors: %d marked in run A, %d in run B", len(ta), len(tb))
	}
	la, err := a.liveAt(a.ReadyOrder)
	if err != nil {
		return err
	}
	lb, err := b.liveAt(b.ReadyOrder)
	if err != nil {
		return err
	}
	for i, t := range ta {
		if t.Name != tb[i].Name || t.Size != tb[i].Size || t.Role != tb[i].Role {
			return fmt.Errorf("compile tensor %q: it differs between the runs", t.Name)
		}
		at, err := tensorPlace(la, lb, t, tb[i], spec)
		if err != nil {
			return fmt.Errorf("compile tensor %q: %w", t.Name, err)
		}
		spec.Tensors = append(spec.Tensors, graphir.Tensor{
			Name: t.Name, Role: graphir.Role(t.Role), DType: graphir.DType(t.Dtype), At: at, Size: t.Size,
			Shape: t.Shape, Lo: t.Lo, Hi: t.Hi, Distinct: t.Fill == contract.FillDistinct,
		})
	}
	return nil
}

// tensorPlace returns the allocation that holds a marked address, which is known to be one. In a divided allocation the
// place is that of run A: the name counts.
func tensorPlace(la, lb *liveSet, ta, tb *trace.Tensor, spec *graphir.Spec) (graphir.Pointer, error) {
	a, b := la.holding(ta.Addr), lb.holding(tb.Addr)
	if a == nil || b == nil {
		return graphir.Pointer{}, errors.New("it lies in no allocation")
	}
	at := graphir.Pointer{Alloc: a.ID, Offset: ta.Addr - a.Addr, Space: a.Space}
	divided := at.Space == graphir.SpaceAlloc && spec.Allocations[at.Alloc].Divided
	if !divided && at != (graphir.Pointer{Alloc: b.ID, Offset: tb.Addr - b.Addr, Space: b.Space}) {
		return graphir.Pointer{}, errors.New("it does not lie in the same place in both runs")
	}
	return at, nil
}
