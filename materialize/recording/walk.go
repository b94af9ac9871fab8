package recording

import (
	"errors"
	"fmt"
	"io"

	"medusa/interpose/trace"
)

// Body is the nodes and edges of a capture, in driver order, with the data that belong to them.
type Body struct {
	*Capture
	NodeRecords []trace.Record
	EdgeRecords []*trace.Edge
	Host        map[uint64][]byte // node -> the host memory that it reads
	Moments     map[uint64]uint64 // node -> order of the first free after it inside this capture
	Embedded    map[uint32]*Body  // by the number of a graph that a child graph node embeds
	memory      *trace.Memory     // of its records
}

// Walk reads a trace once more, for the nodes of its graphs, of which it holds two at a time, and those that child graph
// nodes embed. The recorder writes a graph's parts before those of the next.
type Walk struct {
	r        *Recording
	file     *trace.Reader
	moments  map[uint64][]*trace.Moment // by graph handle, until that graph's capture ends
	open     *Body                      // its parts are being read
	held     [2]*Body                   // their parts are complete and in use
	embedded map[uint32]*Body           // until the graph that embeds them is read
	spare    Body                       // memory of those that were dropped
}

// Walk opens the trace once more.
func (r *Recording) Walk() (*Walk, error) {
	f, err := trace.Open(r.Path)
	if err != nil {
		return nil, err
	}
	f.Only(walked)
	return &Walk{r: r, file: f, moments: map[uint64][]*trace.Moment{}, embedded: map[uint32]*Body{}}, nil
}

// walked reports whether a walk reads records of a type.
func walked(t trace.Type) bool {
	switch t {
	case trace.TypeGraph, trace.TypeMoment, trace.TypeEdge:
		return true
	case trace.TypeHostChanged:
		return false
	}
	return t.OfNode()
}

// Close closes the trace.
func (w *Walk) Close() error { return w.file.Close() }

// To reads up to a graph, whose parts are there until the call after the next. Graphs are asked for in the order of the recording.
func (w *Walk) To(g *Capture) (*Body, error) {
	// mutant: graph in use while the next is read
	w.drop(w.held[1])
	w.held = [2]*Body{nil, w.held[0]}
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
			w.held[0] = done
			return done, nil
		case rec == nil:
			return nil, fmt.Errorf("read trace %s: graph %d: %w", w.r.Path, g.ID, ErrDangling)
		}
		w.drop(done)
	}
}

// drop forgets a graph's parts, unless another graph embeds them.
func (w *Walk) drop(b *Body) {
	if b != nil && !w.keeps(b) {
		clear(b.NodeRecords)
		clear(b.EdgeRecords)
		b.memory.Reset()
		w.spare = Body{NodeRecords: b.NodeRecords[:0], EdgeRecords: b.EdgeRecords[:0], memory: b.memory}
	}
}

// keeps reports whether a graph's parts are needed for another graph.
func (w *Walk) keeps(b *Body) bool {
	// mutant: graphs forgotten once they are compiled
	return w.r.Embedded[b.ID]
}

func (w *Walk) add(rec trace.Record) error {
	var id uint32
	switch v := rec.(type) {
	case *trace.Moment:
		w.moments[v.Graph] = append(w.moments[v.Graph], v)
		return nil
	case *trace.Edge:
		id = v.Graph
	case trace.NodeRecord:
		id, _ = v.Place()
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
		return nil
	case *trace.HostData:
		if b.Host == nil {
			b.Host = map[uint64][]byte{}
		}
		b.Host[v.Node] = v.Data
		return nil
	case *trace.Kernel:
		if w.r.Functions[v.Function] == nil {
			return fmt.Errorf("kernel node of function %d: %w", v.Function, ErrDangling)
		}
	case *trace.EventNode:
		if int(v.Event) >= len(w.r.Events) {
			return fmt.Errorf("node of event %d: %w", v.Event, ErrDangling)
		}
	case *trace.Child:
		if b.Embedded == nil {
			b.Embedded = map[uint32]*Body{}
		}
		b.Embedded[v.Child] = w.embedded[v.Child]
		delete(w.embedded, v.Child)
	}
	b.NodeRecords = append(b.NodeRecords, rec)
	return nil
}

// complete rejects a graph that misses nodes, and keeps one that another will embed.
func (w *Walk) complete(b *Body) error {
	// mutant: graphs that miss nodes
	if b != nil && (len(b.NodeRecords) != int(b.Nodes) || len(b.EdgeRecords) != int(b.Edges)) {
		return fmt.Errorf("read trace %s: graph %q: %d of %d nodes and %d of %d edges recorded",
			w.r.Path, b.Label, len(b.NodeRecords), b.Nodes, len(b.EdgeRecords), b.Edges)
	}
	if b != nil && w.keeps(b) {
		w.embedded[b.ID] = b
	}
	return nil
}

// begin makes room for the parts of a graph.
func (w *Walk) begin(v *trace.Graph) *Body {
	b := &Body{Capture: w.r.ByID[v.ID], NodeRecords: w.spare.NodeRecords, EdgeRecords: w.spare.EdgeRecords, memory: w.spare.memory}
	if b.memory == nil {
		b.memory = &trace.Memory{}
	}
	w.file.Into(b.memory)
	w.spare = Body{}
	for _, m := range w.moments[v.Handle] {
		for _, n := range m.Nodes {
			if b.Moments == nil {
				b.Moments = map[uint64]uint64{}
			}
			if _, ok := b.Moments[n]; !ok {
				b.Moments[n] = m.Header().Order
			}
		}
	}
	delete(w.moments, v.Handle)
	return b
}
