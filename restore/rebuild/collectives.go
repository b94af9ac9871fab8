package rebuild

import (
	"errors"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/live"
)

// Collectives makes a call of the engine's communicator on a capturing stream, as all ranks do at the same time.
type Collectives func(call *contract.Collective, stream cuda.Stream) error

// place in the artifact of a call.
type hole struct{ graph, node int }

// captureCollectives makes the calls of some graphs, each in a capture of its own. All ranks have the same graphs in the same order, with
// the same calls in the same order. The caller destroys the graphs that were captured, also if it fails.
func (b *builder) captureCollectives(graphs []int) (err error) {
	b.captured = map[hole]cuda.Graph{}
	cursor := b.spec.NewCursor()
	var stream cuda.Stream
	defer func() {
		if stream != 0 {
			err = errors.Join(err, stream.Destroy())
		}
	}()
	for _, i := range graphs {
		g, err := cursor.Graph(i)
		if err != nil {
			return err
		}
		for _, at := range callsOf(g) {
			if b.collectives == nil {
				return fmt.Errorf("build graph %s: it has collective calls, and the engine makes none (call medusa_session_collectives)", g.Label)
			}
			if stream == 0 {
				if stream, err = cuda.StreamCreate(cuda.StreamNonBlocking); err != nil {
					return err
				}
			}
			if b.captured[hole{i, at}], err = b.capture(stream, g.Nodes[at].Collective().Call()); err != nil {
				return fmt.Errorf("build graph %s: node %d (collective): %w", g.Label, at, err)
			}
		}
	}
	return nil
}

// callsOf returns the nodes of a graph that are holes, in the order of the calls.
func callsOf(g *graphir.Graph) (nodes []int) {
	for i := range g.Nodes {
		if g.Nodes[i].Type == graphir.NodeCollective {
			nodes = append(nodes, i)
		}
	}
	number := func(i int) int { return int(g.Nodes[i].Collective().Call().Number) }
	slices.SortStableFunc(nodes, func(i, j int) int { return number(i) - number(j) })
	return nodes
}

// capture makes one call.
func (b *builder) capture(stream cuda.Stream, c graphir.Collective) (cuda.Graph, error) {
	call := contract.Collective{
		Operation: c.Operation, Dtype: c.DType, Reduce: c.Reduce, Root: c.Root, Count: c.Count, SendBytes: c.SendBytes, RecvBytes: c.RecvBytes,
	}
	var err error
	if call.Send, err = b.memory.Address(c.Send); err != nil {
		return 0, err
	}
	if call.Recv, err = b.memory.Address(c.Recv); err != nil {
		return 0, err
	}
	if err := stream.BeginCapture(cuda.CaptureThreadLocal); err != nil {
		return 0, err
	}
	err = live.ForCommunicator(func() error { return b.collectives(&call, stream) })
	graph, ended := stream.EndCapture()
	if err = errors.Join(err, ended); err != nil {
		if graph != 0 {
			err = errors.Join(err, graph.Destroy())
		}
		return 0, err
	}
	nodes, err := graph.NodeCount()
	if err == nil && nodes == 0 {
		err = errors.New("the engine's call captured nothing")
	}
	return graph, err
}

// forgetCollectives destroys the captured graphs. The driver has copied them into the graphs that embed them.
func (b *builder) forgetCollectives() (err error) {
	for _, g := range b.captured {
		if g != 0 {
			err = errors.Join(err, g.Destroy())
		}
	}
	b.captured = nil
	return err
}

// layCollective puts the captured call in the place of the hole.
func (b *builder) layCollective(t *template, i int, _ *graphir.Node, _ bool) error {
	// mutant: collective call in its place
	graph := b.captured[hole{b.current, i}]
	if graph == 0 {
		return errors.New("its collective call was not captured")
	}
	b.program.add(cuda.EntryGraphAddChildGraphNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), val(uint64(graph)))
	return nil
}
