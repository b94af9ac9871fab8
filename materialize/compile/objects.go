package compile

import (
	"bytes"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// global returns the variable with an index of the spec; if its module was loaded again, the last of them.
func (r *run) global(id uint32) *global {
	if int64(id) >= int64(len(r.byIndex)) || r.byIndex[id] < 0 {
		return &global{}
	}
	return &r.globals[r.byIndex[id]]
}

// numberGlobals numbers the variables of both runs alike, by module and name, and returns run A's in that order.
func numberGlobals(a, b *run) (first []*global) {
	type known struct{ module, name string }
	index := map[known]uint32{}
	for _, r := range []*run{a, b} {
		loaded := map[string]int{}
		for _, m := range r.Modules {
			if m.Unloaded == recording.NoOrder {
				loaded[m.IdentityKey()]++
			}
		}
		for i := range r.globals {
			g := &r.globals[i]
			key := known{r.Modules[g.Module].IdentityKey(), g.Name}
			id, found := index[key]
			if !found {
				id = uint32(len(index))
				index[key] = id
			}
			// mutant: image loaded twice
			g.ID, g.ambiguous = id, loaded[key.module] > 1
			if r == a && !found {
				first = append(first, g)
			}
		}
		r.byIndex = slices.Repeat([]int{-1}, len(index))
		for i := range r.globals {
			r.byIndex[r.globals[i].ID] = i
		}
	}
	return first
}

func compileGlobals(table *kernelTable) {
	for _, g := range numberGlobals(table.a, table.b) {
		table.spec.Globals = append(table.spec.Globals, graphir.Global{Module: table.module(table.a.Modules[g.Module]), Name: g.Name, Size: g.Size})
	}
}

// compileEvents lists the events of the prefix as far as graphs' nodes refer to them, so many of them.
func compileEvents(a, b *run, spec *graphir.Spec, used int) error {
	for i := range used {
		if i >= len(b.Events) || a.Events[i].Flags != b.Events[i].Flags || a.Events[i].Steps != b.Events[i].Steps {
			return fmt.Errorf("compile events: %s in run A, %s in run B: events that graphs name are known by the order in which they were created, which has to repeat",
				a.describeEvent(i), b.describeEvent(i))
		}
		spec.Events = append(spec.Events, graphir.Event{Flags: a.Events[i].Flags, Step: a.Events[i].Steps})
	}
	return nil
}

func (r *run) describeEvent(i int) string {
	if i >= len(r.Events) {
		return fmt.Sprintf("event %d does not exist", i)
	}
	e := r.Events[i]
	return fmt.Sprintf("event %d (flags %#x) was created by thread %d after %d allocations and frees", i, e.Flags, e.Thread, e.Steps)
}

// mistakable finds another thread that creates an event with the same flags before the deadline. Which comes first is a race:
// in another process, each could have the other's place, and nothing would tell.
func (r *run) mistakable(event uint32, deadline uint64) (thread uint32, found bool) {
	e := r.Events[event]
	for _, x := range r.Events {
		if x.Born <= deadline && x.Thread != e.Thread && x.Flags == e.Flags {
			return x.Thread, true
		}
	}
	return 0, false
}

// eventNode finds the event of a node. It has to be the engine's own in a restored process, too.
func (c *graphCompiler) eventNode(i int, na, nb *trace.EventNode) (uint32, graphir.NodeType, error) {
	kind := graphir.NodeEventWait
	if na.Record != 0 {
		kind = graphir.NodeEventRecord
	}
	if na.Record != nb.Record || na.Event != nb.Event {
		return 0, kind, fmt.Errorf("compile graph %q: node %d: event %d in run A, %d in run B: the order in which events are created has to repeat", c.label, i, na.Event, nb.Event)
	}
	e := c.a.Events[na.Event]
	switch {
	case e.Born > c.table.deadline: // mutant: event of the capture phase
		return 0, kind, &RefusedError{c.label, i, nodeTypeName(uint32(kind)),
			"its event was created in the capture phase, which a restored start skips"}
	case e.Died < c.a.ReadyOrder:
		return 0, kind, &RefusedError{c.label, i, nodeTypeName(uint32(kind)), "its event was destroyed before the engine was ready"}
	}
	// mutant: events of two threads
	if other, found := c.a.mistakable(na.Event, c.table.deadline); found {
		return 0, kind, &RefusedError{c.label, i, nodeTypeName(uint32(kind)), fmt.Sprintf(
			"its event is thread %d's, and thread %d creates one with the same flags %#x: which comes first, another process could not repeat (let one thread create both)",
			e.Thread, other, e.Flags)}
	}
	return na.Event, kind, nil
}

// child compiles the graph that a child graph node embeds.
func (c *graphCompiler) child(i int, na, nb *trace.Child) (uint32, error) {
	ga, gb := c.a.ByID[na.Child], c.b.ByID[nb.Child]
	out := graphir.Graph{}
	inner := &graphCompiler{a: c.a, b: c.b, ga: ga, gb: gb, table: c.table, out: &out,
		label: fmt.Sprintf("%s, graph embedded by node %d", c.label, i), index: unnumbered, embedded: true}
	if err := inner.compile(); err != nil {
		return 0, err
	}
	number := len(c.table.spec.Children)
	c.table.spec.Children = append(c.table.spec.Children, out)
	for _, p := range inner.padding {
		if p.graph == unnumbered {
			// mutant: place of padding in an embedded graph
			p.graph = number
		}
		// mutant: padding of embedded graphs
		c.padding = append(c.padding, p)
	}
	return uint32(number), nil
}

const unnumbered = -1

// tensorMaps tells tensor maps in recorded bytes from other bytes.
type tensorMaps struct {
	a, b map[string]*recording.TensorMap
	spec *graphir.Spec
}

// tensorMapAlign is the alignment of a CUtensorMap in bytes.
const tensorMapAlign = 64

// at decides the 128 bytes at a place of both runs. number is 0 if they are no tensor map in either.
func (t *tensorMaps) at(p *prover, a, b []byte) (number uint32, ptr graphir.Pointer, err *WordError) {
	if t == nil || len(a) < graphir.TensorMapBytes {
		return 0, ptr, nil
	}
	ma, mb := t.a[string(a[:graphir.TensorMapBytes])], t.b[string(b[:graphir.TensorMapBytes])]
	switch {
	case ma == nil && mb == nil:
		return 0, ptr, nil
	case ma == nil || mb == nil:
		return 0, ptr, &WordError{Unwritten: !bytes.Equal(a[:graphir.TensorMapBytes], b[:graphir.TensorMapBytes]), Reason: "a tensor map in one run only"}
	case ma.Tiled == 0 || mb.Tiled == 0:
		return 0, ptr, &WordError{A: ma.Addr, B: mb.Addr, Reason: "a tensor map that cuTensorMapEncodeTiled did not make: such maps are not restored"}
	}
	ptr, isPointer, err := p.word(ma.Addr, mb.Addr)
	if err != nil {
		return 0, ptr, err
	}
	if !isPointer {
		return 0, ptr, &WordError{A: ma.Addr, B: mb.Addr, Reason: "the address in a tensor map leads to no live allocation"}
	}
	args, other := mapArguments(ma), mapArguments(mb)
	if !equalMaps(&args, &other) {
		return 0, ptr, &WordError{A: ma.Addr, B: mb.Addr, Reason: "a tensor map with other extents in the other run"}
	}
	for i := range t.spec.TensorMaps {
		if equalMaps(&t.spec.TensorMaps[i], &args) {
			return uint32(i) + 1, ptr, nil
		}
	}
	t.spec.TensorMaps = append(t.spec.TensorMaps, args)
	return uint32(len(t.spec.TensorMaps)), ptr, nil
}

func mapArguments(m *recording.TensorMap) graphir.TensorMap {
	return graphir.TensorMap{DataType: m.Type, Interleave: m.Interleave, Swizzle: m.Swizzle, L2Promotion: m.L2, OOBFill: m.Fill,
		GlobalDim: m.Dim, GlobalStrides: m.Strides, BoxDim: m.Box, ElementStrides: m.Steps}
}

func equalMaps(x, y *graphir.TensorMap) bool {
	return x.DataType == y.DataType && x.Interleave == y.Interleave && x.Swizzle == y.Swizzle && x.L2Promotion == y.L2Promotion &&
		x.OOBFill == y.OOBFill && slices.Equal(x.GlobalDim, y.GlobalDim) && slices.Equal(x.GlobalStrides, y.GlobalStrides) &&
		slices.Equal(x.BoxDim, y.BoxDim) && slices.Equal(x.ElementStrides, y.ElementStrides)
}
