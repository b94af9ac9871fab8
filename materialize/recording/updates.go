package recording

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"medusa/interpose/trace"
)

// update is a call that made an executable graph of one graph equal to another graph.
type update struct{ from, to *Capture }

// UpdateError is an executable graph that an update changed. A restored start has the graph as it was instantiated.
type UpdateError struct {
	Graph string
	Node  int // the first that differs; -1: their number or an edge does
}

func (e *UpdateError) Error() string {
	place := "other nodes or edges"
	if e.Node >= 0 {
		place = fmt.Sprintf("node %d", e.Node)
	}
	return fmt.Sprintf("record graphs: cuGraphExecUpdate changed graph %q after it was instantiated (%s): instantiate a graph of its own for each "+
		"shape and launch it unchanged (an engine that updates its graphs for each token, such as llama.cpp, has to start natively)", e.Graph, place)
}

// sums tell graphs apart by their work: one for each node in the driver's order, and a last one for the edges.
type sums [][sha256.Size]byte

// checkUpdates refuses a recording in which an update changed a graph. It reads the trace once more if there were updates.
func (r *Recording) checkUpdates() error {
	if len(r.updates) == 0 {
		return nil
	}
	w, err := r.Walk()
	if err != nil {
		return err
	}
	defer w.Close()
	involved := map[*Capture]bool{}
	for _, u := range r.updates {
		involved[u.from], involved[u.to] = true, true
	}
	known := map[*Capture]sums{}
	for _, g := range r.Graphs { // an embedded graph comes before those that embed it
		if !involved[g] {
			continue
		}
		if err := w.To(g); err != nil {
			return err
		}
		known[g] = r.sums(g)
	}
	for _, u := range r.updates {
		// mutant: update that changes a graph
		if !slices.Equal(known[u.from], known[u.to]) {
			return &UpdateError{u.from.Label, differingNode(known[u.from], known[u.to])}
		}
	}
	return nil
}

// differingNode returns the first node in which graphs of as many nodes differ, or -1.
func differingNode(a, b sums) int {
	for i := range len(a) - 1 {
		if len(a) == len(b) && a[i] != b[i] {
			return i
		}
	}
	return -1
}

// sums reads the parts of a graph that a walk has reached. Handles of nodes and graphs differ between equal graphs, so they are
// left out.
func (r *Recording) sums(g *Capture) sums {
	out := make(sums, 0, len(g.Parts.Nodes)+1)
	index := map[uint64]int{} // of nodes by handle
	for i, rec := range g.Parts.Nodes {
		node, text := r.content(rec)
		index[node] = i
		out = append(out, sha256.Sum256(fmt.Appendf(nil, "%s %x", text, g.Parts.Host[node])))
	}
	var edges []string
	for _, e := range g.Parts.Edges {
		edges = append(edges, fmt.Sprint(index[e.From], index[e.To], e.FromPort, e.ToPort, e.Type))
	}
	slices.Sort(edges)
	return append(out, sha256.Sum256(fmt.Append(nil, edges)))
}

// content returns a node's handle, and all else that is known of it as text.
func (r *Recording) content(rec trace.Record) (node uint64, text string) {
	switch v := rec.(type) {
	case *trace.Kernel:
		return v.Node, fmt.Sprint("kernel", v.Function, v.Grid, v.Block, v.Shared, v.Params, v.Attrs)
	case *trace.Memset:
		c := *v
		c.Head, c.Graph, c.Node = trace.Head{}, 0, 0
		return v.Node, fmt.Sprintf("memset %+v", c)
	case *trace.Memcpy:
		c := *v
		c.Head, c.Graph, c.Node = trace.Head{}, 0, 0
		return v.Node, fmt.Sprintf("memcpy %+v", c)
	case *trace.Empty:
		return v.Node, "empty"
	case *trace.EventNode:
		return v.Node, fmt.Sprint("event", v.Record, v.Event)
	case *trace.Child:
		return v.Node, fmt.Sprintf("child %x", r.sums(r.ByID[v.Child]))
	case *trace.Opaque:
		return v.Node, fmt.Sprint("opaque", v.Header().Order) // little is known of it, so it equals no other
	}
	return 0, fmt.Sprint(rec.Header().Order)
}
