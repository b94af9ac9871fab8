package materialize

import (
	"cmp"
	"fmt"
	"slices"

	"medusa/graphir"
)

// CallsError is a collective call that another rank does not make. Ranks that are recorded together would wait for each other in such a call.
type CallsError struct {
	Rank         int // beside rank 0
	Graph        string
	First, Other string // the call of rank 0, and the other rank's
}

func (e *CallsError) Error() string {
	return fmt.Sprintf("compare ranks: collective calls of graph %q: rank 0 has %s, rank %d has %s (all ranks have to make the same calls in the same order)",
		e.Graph, e.First, e.Rank, e.Other)
}

// ranksCall is a call as all ranks make it. Its buffers are each rank's own.
type ranksCall struct {
	graph                          string
	number                         uint32
	operation, dtype, reduce, root uint32
	count, send, recv              uint64
}

func (c *ranksCall) String() string {
	if c == nil {
		return "no more calls"
	}
	return fmt.Sprintf("call %d of operation %d, type %d, reduction %d, root %d, %d elements, %d bytes sent, %d received",
		c.number, c.operation, c.dtype, c.reduce, c.root, c.count, c.send, c.recv)
}

// compareCalls demands that ranks which were recorded alone make the same calls in the same order, graph by graph. Nothing else compares them
// before they serve.
func compareCalls(specs []*graphir.Spec) error {
	var first []ranksCall
	for rank, spec := range specs {
		calls, err := callsOf(spec)
		if err != nil {
			return ofRank(rank, len(specs), err)
		}
		if rank == 0 {
			first = calls
			continue
		}
		for i := range max(len(first), len(calls)) {
			a, b := at(first, i), at(calls, i)
			// mutant: calls of ranks that were recorded alone
			if a != nil && b != nil && *a == *b {
				continue
			}
			graph := ""
			if a != nil {
				graph = a.graph
			} else {
				graph = b.graph
			}
			return &CallsError{rank, graph, a.String(), b.String()}
		}
	}
	return nil
}

func at(calls []ranksCall, i int) *ranksCall {
	if i < len(calls) {
		return &calls[i]
	}
	return nil
}

// callsOf lists the calls of all graphs, in the order in which a start makes them.
func callsOf(spec *graphir.Spec) (all []ranksCall, err error) {
	err = spec.EachGraph(func(_ int, g *graphir.Graph) error {
		var own []ranksCall
		for i := range g.Nodes {
			if g.Nodes[i].Type == graphir.NodeCollective {
				c := g.Nodes[i].Collective().Call()
				own = append(own, ranksCall{g.Label, c.Number, c.Operation, c.DType, c.Reduce, c.Root, c.Count, c.SendBytes, c.RecvBytes})
			}
		}
		slices.SortFunc(own, func(a, b ranksCall) int { return cmp.Compare(a.number, b.number) })
		all = append(all, own...)
		return nil
	})
	return all, err
}
