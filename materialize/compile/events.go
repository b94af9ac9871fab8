package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

var eventNodes = nodeOf(nodeType[*trace.EventNode]{
	makes: []graphir.NodeType{graphir.NodeEventWait, graphir.NodeEventRecord},
	kind:  func(_ *shape, v *trace.EventNode) (uint64, error) { return mix(5, uint64(v.Record)), nil },
	words: func(v *trace.EventNode) []uint64 { return []uint64{uint64(v.Event)} },
	compile: func(c *graphCompiler, i int, na, nb *trace.EventNode, out *graphir.Node) (err error) {
		out.Target, out.Type, err = c.event(i, na, nb)
		return err
	},
	becomes: func(v *trace.EventNode) graphir.NodeType {
		if v.Record != 0 {
			return graphir.NodeEventRecord
		}
		return graphir.NodeEventWait
	},
	compare: func(c *compared, n *trace.EventNode) error {
		if n.Event != c.want.Target {
			return c.differ("its event", n.Event, c.want.Target)
		}
		return nil
	},
})

// event finds the event of a node. It has to be the engine's own in a restored process, too.
func (c *graphCompiler) event(i int, na, nb *trace.EventNode) (uint32, graphir.NodeType, error) {
	kind := graphir.NodeEventWait
	if na.Record != 0 {
		kind = graphir.NodeEventRecord
	}
	if na.Record != nb.Record || na.Event != nb.Event {
		return 0, kind, fmt.Errorf("compile graph %q: node %d: event %d in record-a, %d in record-b: the order in which events are created has to repeat", c.label, i, na.Event, nb.Event)
	}
	e := c.a.Events[na.Event]
	switch {
	case e.Born > c.deadline: // mutant: event of the capture phase
		return 0, kind, &RefusedError{c.label, i, nodeTypeName(uint32(kind)),
			"its event was created in the capture phase, which a restored start skips"}
	case e.Died < c.a.ReadyOrder:
		return 0, kind, &RefusedError{c.label, i, nodeTypeName(uint32(kind)), "its event was destroyed before the engine was ready"}
	}
	// mutant: events of two threads
	if other, found := c.a.mistakable(na.Event, c.deadline); found {
		return 0, kind, &RefusedError{c.label, i, nodeTypeName(uint32(kind)), fmt.Sprintf(
			"its event is thread %d's, and thread %d creates one with the same flags %#x: which comes first, another process could not repeat (let one thread create both)",
			e.Thread, other, e.Flags)}
	}
	return na.Event, kind, nil
}

// mistakable finds another thread that creates an event with the same flags before the deadline. Which comes first is a race:
// in another process, each could have the other's place, and the mistake would not be found.
func (r *run) mistakable(event uint32, deadline uint64) (thread uint32, found bool) {
	e := r.Events[event]
	for _, x := range r.Events {
		if x.Born <= deadline && x.Thread != e.Thread && x.Flags == e.Flags {
			return x.Thread, true
		}
	}
	return 0, false
}

// compileEvents lists the first events of the prefix, up to the last one that a graph's node refers to. used is their number.
func compileEvents(a, b *run, used int) ([]graphir.Event, error) {
	var out []graphir.Event
	for i := range used {
		if i >= len(b.Events) || a.Events[i].Flags != b.Events[i].Flags || a.Events[i].Steps != b.Events[i].Steps {
			return nil, fmt.Errorf("compile events: %s in record-a, %s in record-b: events that graphs name are known by the order in which they were created, which has to repeat",
				a.describeEvent(i), b.describeEvent(i))
		}
		out = append(out, graphir.Event{Flags: a.Events[i].Flags, Step: a.Events[i].Steps})
	}
	return out, nil
}

func (r *run) describeEvent(i int) string {
	if i >= len(r.Events) {
		return fmt.Sprintf("event %d does not exist", i)
	}
	e := r.Events[i]
	return fmt.Sprintf("event %d (flags %#x) was created by thread %d after %d allocations and frees", i, e.Flags, e.Thread, e.Steps)
}
