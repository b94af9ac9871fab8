package recording

import (
	"errors"
	"fmt"
	"io"

	"medusa/interpose/trace"
)

// Parts are the nodes and edges of a capture, in driver order, with their belongings.
type Parts struct {
	Nodes   []trace.Record
	Edges   []*trace.Edge
	Host    map[uint64][]byte // node -> the host memory that it reads
	Moments map[uint64]uint64 // node -> order of the first free after it inside this capture
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

// Walk reads a trace once more, for the nodes of its graphs, of which it holds one at a time, and those that child graph
// nodes embed. The recorder writes a graph's parts before those of the next.
type Walk struct {
	r       *Recording
	file    *trace.Reader
	moments map[uint64][]*trace.Moment // by graph handle, until that graph's capture ends
	open    *Capture                   // its parts are being read
	held    *Capture                   // its parts are complete and in use
	spare   Parts                      // memory of those that were dropped
}

// Walk opens the trace once more.
func (r *Recording) Walk() (*Walk, error) {
	f, err := trace.Open(r.Path)
	if err != nil {
		return nil, err
	}
	f.Only(walked)
	return &Walk{r: r, file: f, moments: map[uint64][]*trace.Moment{}}, nil
}

// Close closes the trace.
func (w *Walk) Close() error { return w.file.Close() }

// To reads up to a graph, whose parts are there until the next call. Graphs are asked for in the order of the recording.
func (w *Walk) To(g *Capture) error {
	w.drop(w.held)
	for {
		rec, err := w.file.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		next, isGraph := rec.(*trace.Graph)
		if rec != nil && !isGraph {
			if err := w.add(rec); err != nil {
				return fmt.Errorf("read trace %s: record %d: %w", w.r.Path, rec.Header().Order, err)
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
			return fmt.Errorf("read trace %s: graph %d: %w", w.r.Path, g.ID, ErrDangling)
		}
		w.drop(done)
	}
}

// drop forgets a graph's parts.
func (w *Walk) drop(g *Capture) {
	// mutant: graphs forgotten once they are compiled
	if g != nil && !w.r.Embedded[g.ID] {
		clear(g.Parts.Nodes)
		clear(g.Parts.Edges)
		w.spare, g.Parts = Parts{Nodes: g.Parts.Nodes[:0], Edges: g.Parts.Edges[:0]}, Parts{}
	}
}

// begin makes room for the parts of a graph.
func (w *Walk) begin(v *trace.Graph) {
	g := w.r.ByID[v.ID]
	g.Parts, w.spare = w.spare, Parts{}
	for _, m := range w.moments[v.Handle] {
		for _, n := range m.Nodes {
			if g.Parts.Moments == nil {
				g.Parts.Moments = map[uint64]uint64{}
			}
			if _, ok := g.Parts.Moments[n]; !ok {
				g.Parts.Moments[n] = m.Header().Order
			}
		}
	}
	delete(w.moments, v.Handle)
	w.open = g
}

// complete rejects a graph that misses nodes.
func (w *Walk) complete(g *Capture) error {
	// mutant: graphs that miss nodes
	if g != nil && (len(g.Parts.Nodes) != int(g.Nodes) || len(g.Parts.Edges) != int(g.Edges)) {
		return fmt.Errorf("read trace %s: graph %q: %d of %d nodes and %d of %d edges recorded",
			w.r.Path, g.Label, len(g.Parts.Nodes), g.Nodes, len(g.Parts.Edges), g.Edges)
	}
	return nil
}

func (w *Walk) add(rec trace.Record) error {
	var id uint32
	switch v := rec.(type) {
	case *trace.Moment:
		w.moments[v.Graph] = append(w.moments[v.Graph], v)
		return nil
	case *trace.Kernel:
		if w.r.Functions[v.Function] == nil {
			return fmt.Errorf("kernel node of function %d: %w", v.Function, ErrDangling)
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
		if int(v.Event) >= len(w.r.Events) {
			return fmt.Errorf("node of event %d: %w", v.Event, ErrDangling)
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
		return fmt.Errorf("part of graph %d: %w", id, ErrDangling)
	}
	switch v := rec.(type) {
	case *trace.Edge:
		g.Parts.Edges = append(g.Parts.Edges, v)
	case *trace.HostData:
		if g.Parts.Host == nil {
			g.Parts.Host = map[uint64][]byte{}
		}
		g.Parts.Host[v.Node] = v.Data
	default:
		g.Parts.Nodes = append(g.Parts.Nodes, rec)
	}
	return nil
}
