package materialize

import (
	"bytes"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// event lives from record born up to, not including, record died.
type event struct {
	*trace.Event
	born, died uint64
}

// global is a module variable whose address the process asked for. As memory it is an allocation in a space of its own.
type global struct {
	allocation
	name      string
	ambiguous bool // another loaded module has the same identity: nothing tells online which one was meant
}

// tensorMap is what one encoded tensor map was made from, and the address that it holds now.
type tensorMap struct {
	*trace.TensorMap
	addr uint64
}

func (r *Recording) addGlobal(v *trace.Global) error {
	if r.modules[v.Module] == nil {
		return nil // of a module whose load was not seen: a pointer into it leads nowhere, and is refused as that
	}
	if err := r.wraps(v.Addr, v.Size, v.Header().Order); err != nil {
		return err
	}
	g := global{name: v.Name}
	g.allocation = allocation{
		module: v.Module, space: graphir.SpaceGlobal, kind: graphir.AllocDevice, addr: v.Addr, size: v.Size, born: r.modules[v.Module].loaded, died: noOrder,
	}
	if v.Managed != 0 {
		g.kind = graphir.AllocManaged
	}
	r.variables[v.Module] = append(r.variables[v.Module], len(r.globals))
	r.globals = append(r.globals, g)
	return nil
}

// global returns the variable with an index of the spec; where its module was loaded again, the last of them.
func (r *Recording) global(id uint32) *global {
	if int64(id) >= int64(len(r.byIndex)) || r.byIndex[id] < 0 {
		return &global{}
	}
	return &r.globals[r.byIndex[id]]
}

func (r *Recording) unload(module uint32, order uint64) {
	if m := r.modules[module]; m != nil {
		m.unloaded = order
	}
	for _, i := range r.variables[module] {
		r.globals[i].died = order
	}
	delete(r.variables, module)
}

func (r *Recording) moveTensorMap(v *trace.TensorMoved) {
	from := &trace.TensorMap{}
	if m := r.tensorMaps[string(v.Before)]; m != nil {
		from = m.TensorMap
	}
	// mutant: tensor map that moved
	r.tensorMaps[string(v.After)] = &tensorMap{TensorMap: from, addr: v.Addr}
}

// numberGlobals numbers the variables of both runs alike, by module and name, and returns run A's in that order.
func numberGlobals(a, b *Recording) (first []*global) {
	type known struct{ module, name string }
	index := map[known]uint32{}
	for _, r := range []*Recording{a, b} {
		loaded := map[string]int{}
		for _, m := range r.modules {
			if m.unloaded == noOrder {
				loaded[m.identityKey()]++
			}
		}
		for i := range r.globals {
			g := &r.globals[i]
			key := known{r.modules[g.module].identityKey(), g.name}
			id, found := index[key]
			if !found {
				id = uint32(len(index))
				index[key] = id
			}
			// mutant: image loaded twice
			g.id, g.ambiguous = id, loaded[key.module] > 1
			if r == a && !found {
				first = append(first, g)
			}
		}
		r.byIndex = slices.Repeat([]int{-1}, len(index))
		for i := range r.globals {
			r.byIndex[r.globals[i].id] = i
		}
	}
	return first
}

func compileGlobals(table *kernelTable) {
	for _, g := range numberGlobals(table.a, table.b) {
		table.spec.Globals = append(table.spec.Globals, graphir.Global{Module: table.module(table.a.modules[g.module]), Name: g.name, Size: g.size})
	}
}

// compileEvents lists the events of the prefix as far as graphs' nodes refer to them, so many of them.
func compileEvents(a, b *Recording, spec *graphir.Spec, used int) error {
	for i := range used {
		if i >= len(b.events) || a.events[i].Flags != b.events[i].Flags || a.events[i].Steps != b.events[i].Steps {
			return fmt.Errorf("compile events: %s in run A, %s in run B: events that graphs name are known by the order in which they were created, which has to repeat",
				a.describeEvent(i), b.describeEvent(i))
		}
		spec.Events = append(spec.Events, graphir.Event{Flags: a.events[i].Flags, Step: a.events[i].Steps})
	}
	return nil
}

func (r *Recording) describeEvent(i int) string {
	if i >= len(r.events) {
		return fmt.Sprintf("event %d does not exist", i)
	}
	e := r.events[i]
	return fmt.Sprintf("event %d (flags %#x) was created by thread %d after %d allocations and frees", i, e.Flags, e.Thread, e.Steps)
}

// mistakable finds another thread that creates an event with the same flags before the deadline. Which comes first is a race:
// in another process, each could have the other's place, and nothing would tell.
func (r *Recording) mistakable(event uint32, deadline uint64) (thread uint32, found bool) {
	e := r.events[event]
	for _, x := range r.events {
		if x.born <= deadline && x.Thread != e.Thread && x.Flags == e.Flags {
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
	e := c.a.events[na.Event]
	switch {
	case e.born > c.table.deadline: // mutant: event of the capture phase
		return 0, kind, &RefusedError{c.label, i, nodeTypeName(uint32(kind)),
			"its event was created in the capture phase, which a restored start skips"}
	case e.died < c.a.readyOrder:
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
	ga, gb := c.a.byID[na.Child], c.b.byID[nb.Child]
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
	a, b map[string]*tensorMap
	spec *graphir.Spec
}

// tensorMapAlign is the alignment of a CUtensorMap in bytes.
const tensorMapAlign = 64

// at decides the 128 bytes at a place of both runs. number is 0 where they are no tensor map in either.
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
		return 0, ptr, &WordError{A: ma.addr, B: mb.addr, Reason: "a tensor map that cuTensorMapEncodeTiled did not make: such maps are not restored"}
	}
	ptr, isPointer, err := p.word(ma.addr, mb.addr)
	if err != nil {
		return 0, ptr, err
	}
	if !isPointer {
		return 0, ptr, &WordError{A: ma.addr, B: mb.addr, Reason: "the address in a tensor map leads to no live allocation"}
	}
	args, other := ma.arguments(), mb.arguments()
	if !equalMaps(&args, &other) {
		return 0, ptr, &WordError{A: ma.addr, B: mb.addr, Reason: "a tensor map with other extents in the other run"}
	}
	for i := range t.spec.TensorMaps {
		if equalMaps(&t.spec.TensorMaps[i], &args) {
			return uint32(i) + 1, ptr, nil
		}
	}
	t.spec.TensorMaps = append(t.spec.TensorMaps, args)
	return uint32(len(t.spec.TensorMaps)), ptr, nil
}

func (m *tensorMap) arguments() graphir.TensorMap {
	return graphir.TensorMap{DataType: m.Type, Interleave: m.Interleave, Swizzle: m.Swizzle, L2Promotion: m.L2, OOBFill: m.Fill,
		GlobalDim: m.Dim, GlobalStrides: m.Strides, BoxDim: m.Box, ElementStrides: m.Steps}
}

func equalMaps(x, y *graphir.TensorMap) bool {
	return x.DataType == y.DataType && x.Interleave == y.Interleave && x.Swizzle == y.Swizzle && x.L2Promotion == y.L2Promotion &&
		x.OOBFill == y.OOBFill && slices.Equal(x.GlobalDim, y.GlobalDim) && slices.Equal(x.GlobalStrides, y.GlobalStrides) &&
		slices.Equal(x.BoxDim, y.BoxDim) && slices.Equal(x.ElementStrides, y.ElementStrides)
}
