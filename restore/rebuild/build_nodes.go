package rebuild

import (
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// nodeWriter writes the calls for node i of a graph: those that add it, if the graph is the first of its template, else those that set its
// parameters.
type nodeWriter func(b *builder, t *template, i int, n *graphir.Node, first bool) error

// nodeTypes has a row for each type of node. It is filled by init, since the row of a child graph node refers to it.
var nodeTypes []nodeWriter

func init() {
	nodeTypes = []nodeWriter{
		graphir.NodeKernel:      (*builder).layKernel,
		graphir.NodeMemcpy:      (*builder).layMemcpy,
		graphir.NodeMemset:      (*builder).layMemset,
		graphir.NodeMemOps:      (*builder).layMemOps,
		graphir.NodeChild:       (*builder).layChildNode,
		graphir.NodeEmpty:       (*builder).layEmpty,
		graphir.NodeEventWait:   (*builder).layEventNode,
		graphir.NodeEventRecord: (*builder).layEventNode,
		graphir.NodeCollective:  (*builder).layCollective,
	}
}

func (b *builder) layEmpty(t *template, i int, _ *graphir.Node, first bool) error {
	if first {
		// mutant: empty node
		b.program.add(cuda.EntryGraphAddEmptyNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0))
	}
	return nil
}

func (b *builder) layChildNode(t *template, i int, n *graphir.Node, _ bool) error {
	// mutant: embedded graph
	return b.layChild(t, i, &b.spec.Children[n.Target])
}

// layChild makes the graph that a node embeds; the driver copies it into the node.
func (b *builder) layChild(t *template, i int, g *graphir.Graph) error {
	slots, err := place[uint64](&b.slots, 1+len(g.Nodes))
	if err != nil {
		return err
	}
	child := &template{graph: &slots[0], nodes: slots[1:]}
	b.embedded = append(b.embedded, child.graph)
	if err := b.layGraph(child, g, true); err != nil {
		return fmt.Errorf("embedded graph: %w", err)
	}
	b.program.add(cuda.EntryGraphAddChildGraphNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), slot(child.graph))
	return nil
}

func (b *builder) layEventNode(t *template, i int, n *graphir.Node, first bool) error {
	add := cuda.EntryGraphAddEventRecordNode
	// mutant: event record and event wait
	if n.Type == graphir.NodeEventWait {
		add = cuda.EntryGraphAddEventWaitNode
	}
	if !first {
		return nil
	}
	return b.layEvent(t, i, n, add)
}

// layEvent adds a node about an event of the engine's. Members of a template have their events in common.
func (b *builder) layEvent(t *template, i int, n *graphir.Node, add cuda.Entry) error {
	if int(n.Target) >= len(b.events) || b.events[n.Target] == 0 {
		return fmt.Errorf("find event %d: it does not exist in this process", n.Target)
	}
	// mutant: event of the engine
	b.program.add(add, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), val(b.events[n.Target]))
	return nil
}

// layMemOps lays the operations out in the arena, with their addresses patched in place.
func (b *builder) layMemOps(t *template, i int, n *graphir.Node, first bool) error {
	m := n.MemOps()
	ops, err := b.arena.bytes(len(m.Params))
	if err != nil {
		return err
	}
	copy(ops, m.Params)
	// mutant: address of a memory operation
	if err := b.memory.Patch(ops, m.Relocations); err != nil {
		return fmt.Errorf("memory operations: %w", err)
	}
	params, err := place[cuda.BatchMemOpNodeParams](&b.arena, 1)
	if err != nil {
		return err
	}
	params[0] = cuda.BatchMemOpNodeParams{Ctx: b.context, Count: uint32(len(ops) / graphir.MemOpBytes), Ops: uintptr(unsafe.Pointer(unsafe.SliceData(ops)))}
	if !first {
		b.program.add(cuda.EntryGraphBatchMemOpNodeSetParams, i, slot(&t.nodes[i]), ptr(&params[0]))
		return nil
	}
	b.program.add(cuda.EntryGraphAddBatchMemOpNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), ptr(&params[0]))
	return nil
}
