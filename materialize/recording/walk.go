package recording

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"medusa/interpose/trace"
)

// Body is the nodes and edges of a capture, in driver order, with what belongs to them.
type Body struct {
	*Capture
	NodeRecords []trace.Record
	EdgeRecords []*trace.Edge
	Host        map[uint64][]byte // node -> what it reads from host memory
	Moments     map[uint64]uint64 // node -> order of the first free after it inside this capture
	Embedded    map[uint32]*Body  // by the number of a graph that a child graph node embeds
}

// nodeTypes are the records of nodes.
var nodeTypes = []trace.Type{trace.TypeKernel, trace.TypeMemset, trace.TypeMemcpy, trace.TypeEmpty, trace.TypeOpaque, trace.TypeEventNode, trace.TypeChild}

// isPart reports whether a walk reads the record.
func isPart(t trace.Type) bool {
	switch t {
	case trace.TypeGraph, trace.TypeMoment, trace.TypeEdge, trace.TypeHostData:
		return true
	}
	return slices.Contains(nodeTypes, t)
}

// Walk reads a trace once more, for the nodes of its graphs, of which it holds one at a time, and those that child graph
// nodes embed. The recorder writes a graph's parts before those of the next.
type Walk struct {
	r        *Recording
	file     *trace.Reader
	moments  map[uint64][]*trace.Moment // by graph handle, until that graph's capture ends
	open     *Body                      // its parts are being read
	embedded map[uint32]*Body           // until the graph that embeds them is read
}

// Walk opens the trace once more.
func (r *Recording) Walk() (*Walk, error) {
	f, err := trace.Open(r.Path)
	if err != nil {
		return nil, err
	}
	f.Only(isPart)
	return &Walk{r: r, file: f, moments: map[uint64][]*trace.Moment{}, embedded: map[uint32]*Body{}}, nil
}

// Close closes the trace.
func (w *Walk) Close() error { return w.file.Close() }

// To reads up to a graph. Graphs are asked for in the order of the recording.
func (w *Walk) To(g *Capture) (*Body, error) {
	for {
		rec, err := w.file.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		next, isGraph := rec.(*trace.Graph)
		if rec != nil && !isGraph {
			if err := w.add(rec); err != nil {
				return nil, fmt.Errorf("read trace %s: record %d: %w", w.r.Path, rec.Header().Order, err)
			}
			continue
		}
		done := w.open
		if err := w.complete(done); err != nil {
			return nil, err
		}
		if w.open = nil; isGraph {
			w.open = w.begin(next)
		}
		switch {
		case done != nil && done.Capture == g:
			return done, nil
		case rec == nil:
			return nil, fmt.Errorf("read trace %s: graph %d: %w", w.r.Path, g.ID, ErrDangling)
		}
	}
}

// begin makes room for the parts of a graph.
func (w *Walk) begin(v *trace.Graph) *Body {
	b := &Body{Capture: w.r.ByID[v.ID], Host: map[uint64][]byte{}, Moments: map[uint64]uint64{}}
	for _, m := range w.moments[v.Handle] {
		for _, n := range m.Nodes {
			if _, ok := b.Moments[n]; !ok {
				b.Moments[n] = m.Header().Order
			}
		}
	}
	delete(w.moments, v.Handle)
	return b
}

// complete rejects a graph that misses nodes, and keeps one that another will embed.
func (w *Walk) complete(b *Body) error {
	// mutant: graphs that miss nodes
	if b != nil && (len(b.NodeRecords) != int(b.Nodes) || len(b.EdgeRecords) != int(b.Edges)) {
		return fmt.Errorf("read trace %s: graph %q: %d of %d nodes and %d of %d edges recorded",
			w.r.Path, b.Label, len(b.NodeRecords), b.Nodes, len(b.EdgeRecords), b.Edges)
	}
	// mutant: graphs forgotten once they are compiled
	if b != nil && w.r.Embedded[b.ID] {
		w.embedded[b.ID] = b
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
	b := w.open
	if b == nil || b.ID != id {
		return fmt.Errorf("part of graph %d: %w", id, ErrDangling)
	}
	switch v := rec.(type) {
	case *trace.Edge:
		b.EdgeRecords = append(b.EdgeRecords, v)
	case *trace.HostData:
		b.Host[v.Node] = v.Data
	case *trace.Child:
		if b.Embedded == nil {
			b.Embedded = map[uint32]*Body{}
		}
		b.Embedded[v.Child] = w.embedded[v.Child]
		delete(w.embedded, v.Child)
		b.NodeRecords = append(b.NodeRecords, rec)
	default:
		b.NodeRecords = append(b.NodeRecords, rec)
	}
	return nil
}
