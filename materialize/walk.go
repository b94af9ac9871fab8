package materialize

import (
	"errors"
	"fmt"
	"io"

	"medusa/interpose/trace"
)

// parts are the nodes and edges of a capture, in driver order, with what belongs to them.
type parts struct {
	nodes   []trace.Record
	edges   []*trace.Edge
	host    map[uint64][]byte // node -> what it reads from host memory
	moments map[uint64]uint64 // node -> order of the first free after it inside this capture
}

// walked reports whether a walk reads records of a type.
func walked(t trace.Type) bool {
	switch t {
	case trace.TypeGraph, trace.TypeMoment, trace.TypeKernel, trace.TypeMemset, trace.TypeMemcpy, trace.TypeEmpty, trace.TypeOpaque,
		trace.TypeEdge, trace.TypeEventNode, trace.TypeChild, trace.TypeHostData:
		return true
	}
	return false
}

// walk reads a trace once more, for the nodes of its graphs, of which it holds one at a time, and those that child graph
// nodes embed. The recorder writes a graph's parts before those of the next.
type walk struct {
	r       *Recording
	file    *trace.Reader
	moments map[uint64][]*trace.Moment // by graph handle, until that graph's capture ends
	open    *capture                   // its parts are being read
	held    *capture                   // its parts are complete and in use
	spare   parts                      // memory of those that were dropped
}

func (r *Recording) walk() (*walk, error) {
	f, err := trace.Open(r.path)
	if err != nil {
		return nil, err
	}
	f.Only(walked)
	return &walk{r: r, file: f, moments: map[uint64][]*trace.Moment{}}, nil
}

func (w *walk) close() error { return w.file.Close() }

// to reads up to a graph, whose parts are there until the next call. Graphs are asked for in the order of the recording.
func (w *walk) to(g *capture) error {
	w.drop(w.held)
	for {
		rec, err := w.file.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		next, isGraph := rec.(*trace.Graph)
		if rec != nil && !isGraph {
			if err := w.add(rec); err != nil {
				return fmt.Errorf("read trace %s: record %d: %w", w.r.path, rec.Header().Order, err)
			}
			continue
		}
		done := w.open
		if err := w.complete(done); err != nil {
			return err
		}
		if w.open = nil; isGraph {
			w.begin(next)
		}
		switch {
		case done == g:
			w.held = g
			return nil
		case rec == nil:
			return fmt.Errorf("read trace %s: graph %d: %w", w.r.path, g.ID, errDangling)
		}
		w.drop(done)
	}
}

// drop forgets a graph's parts.
func (w *walk) drop(g *capture) {
	// mutant: graphs forgotten once they are compiled
	if g != nil && !w.r.embedded[g.ID] {
		clear(g.nodes)
		clear(g.edges)
		w.spare, g.parts = parts{nodes: g.nodes[:0], edges: g.edges[:0]}, parts{}
	}
}

// begin makes room for the parts of a graph.
func (w *walk) begin(v *trace.Graph) {
	g := w.r.byID[v.ID]
	g.parts, w.spare = w.spare, parts{}
	for _, m := range w.moments[v.Handle] {
		for _, n := range m.Nodes {
			if g.moments == nil {
				g.moments = map[uint64]uint64{}
			}
			if _, ok := g.moments[n]; !ok {
				g.moments[n] = m.Header().Order
			}
		}
	}
	delete(w.moments, v.Handle)
	w.open = g
}

// complete rejects a graph that misses nodes.
func (w *walk) complete(g *capture) error {
	// mutant: graphs that miss nodes
	if g != nil && (len(g.nodes) != int(g.Nodes) || len(g.edges) != int(g.Edges)) {
		return fmt.Errorf("read trace %s: graph %q: %d of %d nodes and %d of %d edges recorded",
			w.r.path, g.Label, len(g.nodes), g.Nodes, len(g.edges), g.Edges)
	}
	return nil
}

func (w *walk) add(rec trace.Record) error {
	var id uint32
	switch v := rec.(type) {
	case *trace.Moment:
		w.moments[v.Graph] = append(w.moments[v.Graph], v)
		return nil
	case *trace.Kernel:
		if w.r.functions[v.Function] == nil {
			return fmt.Errorf("kernel node of function %d: %w", v.Function, errDangling)
		}
		id = v.Graph
	case *trace.Memset:
		id = v.Graph
	case *trace.Memcpy:
		id = v.Graph
	case *trace.Empty:
		id = v.Graph
	case *trace.Opaque:
		id = v.Graph
	case *trace.EventNode:
		if int(v.Event) >= len(w.r.events) {
			return fmt.Errorf("node of event %d: %w", v.Event, errDangling)
		}
		id = v.Graph
	case *trace.Child:
		id = v.Graph
	case *trace.HostData:
		id = v.Graph
	case *trace.Edge:
		id = v.Graph
	default:
		return nil // the first and the last record
	}
	g := w.open
	if g == nil || g.ID != id {
		return fmt.Errorf("part of graph %d: %w", id, errDangling)
	}
	switch v := rec.(type) {
	case *trace.Edge:
		g.edges = append(g.edges, v)
	case *trace.HostData:
		if g.host == nil {
			g.host = map[uint64][]byte{}
		}
		g.host[v.Node] = v.Data
	default:
		g.nodes = append(g.nodes, rec)
	}
	return nil
}
