package materialize

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"medusa/interpose/trace"
)

// update is a call that made an executable graph of one graph equal to another graph.
type update struct{ from, to *capture }

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

// sums tell graphs apart by what they do: one for each node in the driver's order, and a last one for the edges.
type sums [][sha256.Size]byte

// checkUpdates refuses a recording in which an update changed a graph. It reads the trace once more if there were updates.
func (r *Recording) checkUpdates() error {
	if len(r.updates) == 0 {
		return nil
	}
	w, err := r.walk()
	if err != nil {
		return err
	}
	defer w.close()
	involved := map[*capture]bool{}
	for _, u := range r.updates {
		involved[u.from], involved[u.to] = true, true
	}
	known := map[*capture]sums{}
	for _, g := range r.graphs { // an embedded graph comes before those that embed it
		if !involved[g] {
			continue
		}
		if err := w.to(g); err != nil {
			return err
		}
		if known[g], err = r.sums(g); err != nil {
			return err
		}
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
func (r *Recording) sums(g *capture) (sums, error) {
	out := make(sums, 0, len(g.nodes)+1)
	for _, rec := range g.nodes {
		text := fmt.Sprintf("%x", g.host[nodeHandle(rec)])
		switch v := rec.(type) {
		case *trace.Kernel:
			text += fmt.Sprint("kernel", v.Function, v.Grid, v.Block, v.Shared, v.Params, v.Attrs)
		case *trace.Memset:
			c := *v
			c.Head, c.Graph, c.Node = trace.Head{}, 0, 0
			text += fmt.Sprintf("memset %+v", c)
		case *trace.Memcpy:
			c := *v
			c.Head, c.Graph, c.Node = trace.Head{}, 0, 0
			text += fmt.Sprintf("memcpy %+v", c)
		case *trace.Empty:
			text += "empty"
		case *trace.EventNode:
			text += fmt.Sprint("event", v.Record, v.Event)
		case *trace.Child:
			inner, err := r.sums(r.byID[v.Child])
			if err != nil {
				return nil, err
			}
			text += fmt.Sprintf("child %x", inner)
		case *trace.Opaque: // nothing is known of it, so it equals no other
			text += fmt.Sprint("opaque", v.Header().Order)
		}
		out = append(out, sha256.Sum256([]byte(text)))
	}
	edges, err := edgeIndices(g)
	if err != nil {
		return nil, fmt.Errorf("read trace %s: graph %q: %w", r.path, g.Label, err)
	}
	return append(out, sha256.Sum256(fmt.Append(nil, edges))), nil
}
