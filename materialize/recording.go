package materialize

import (
	"errors"
	"fmt"
	"io"
	"math"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// Recording is one traced start, indexed for compiling. It is what a trace says, nothing derived.
type Recording struct {
	path       string
	device     *trace.Device
	kv         *trace.KV
	phases     []phase
	allocs     []allocation // by id
	steps      []graphir.Step
	modules    map[uint32]*module
	functions  map[uint32]*trace.Function
	graphs     []*capture
	byID       map[uint32]*capture
	tensors    []*trace.Tensor
	identity   []*trace.Identity
	contents   []*trace.Content
	blocks     []*trace.Block
	moments    map[uint64][]*trace.Moment // by graph handle, until that graph's capture ends
	faults     []*trace.Fault
	readyOrder uint64
}

// noOrder is the order of what never happened.
const noOrder = math.MaxUint64

type phase struct {
	name  string
	order uint64
	ns    uint64
}

// allocation lives from record born up to, not including, record died.
type allocation struct {
	id         uint32
	kind       graphir.AllocKind
	addr, size uint64
	born, died uint64
	thread     uint32
}

type module struct {
	*trace.Module
	names  []string
	loaded uint64 // order of the load record
}

// capture is one finished stream capture with its nodes in driver order.
type capture struct {
	*trace.Graph
	order   uint64
	nodes   []trace.Record
	edges   []*trace.Edge
	moments map[uint64]uint64 // node -> order of the first free after it inside this capture
	execs   int               // how often it was instantiated
	flags   uint64
}

// phaseOrder returns the order of the first mark of any of the named phases, or the last possible order.
func (r *Recording) phaseOrder(names ...string) uint64 {
	for _, p := range r.phases {
		for _, n := range names {
			if p.name == n {
				return p.order
			}
		}
	}
	return noOrder
}

// ReadRecording reads a whole trace. A trace without its end record (the process died) is an error.
func ReadRecording(path string) (*Recording, error) {
	f, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Recording{
		path: path, modules: map[uint32]*module{}, functions: map[uint32]*trace.Function{},
		byID: map[uint32]*capture{}, moments: map[uint64][]*trace.Moment{}, readyOrder: noOrder,
	}
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			return r, r.check()
		}
		if err != nil {
			return nil, err
		}
		if err := r.add(rec); err != nil {
			return nil, fmt.Errorf("read trace %s: record %d: %w", path, rec.Header().Order, err)
		}
	}
}

// check rejects a trace in which a graph misses nodes, or in which the recorder itself reported a fault.
func (r *Recording) check() error {
	for _, g := range r.graphs {
		if len(g.nodes) != int(g.Nodes) || len(g.edges) != int(g.Edges) {
			return fmt.Errorf("read trace %s: graph %q: %d of %d nodes and %d of %d edges recorded",
				r.path, g.Label, len(g.nodes), g.Nodes, len(g.edges), g.Edges)
		}
	}
	if len(r.faults) > 0 {
		f := r.faults[0]
		return fmt.Errorf("read trace %s: recorder fault in %s: %s (%d faults)", r.path, f.Call, f.Reason, len(r.faults))
	}
	return nil
}

var errDangling = errors.New("reference to something not recorded before")

func (r *Recording) add(rec trace.Record) error {
	order := rec.Header().Order
	switch v := rec.(type) {
	case *trace.Device:
		r.device = v
	case *trace.Phase:
		r.phases = append(r.phases, phase{v.Name, order, rec.Header().Time})
		if v.Name == "ready" {
			r.readyOrder = order
		}
	case *trace.Alloc:
		return r.addAlloc(v, order)
	case *trace.Free:
		return r.addFree(v, order)
	case *trace.Moment:
		r.moments[v.Graph] = append(r.moments[v.Graph], v)
	case *trace.Module:
		r.modules[v.ID] = &module{Module: v, loaded: order}
	case *trace.Names:
		m := r.modules[v.Module]
		if m == nil {
			return fmt.Errorf("names of module %d: %w", v.Module, errDangling)
		}
		m.names = v.Names
	case *trace.Function:
		if r.modules[v.Module] == nil {
			return fmt.Errorf("function %s of module %d: %w", v.Name, v.Module, errDangling)
		}
		r.functions[v.ID] = v
	case *trace.Tensor:
		r.tensors = append(r.tensors, v)
	case *trace.Identity:
		r.identity = append(r.identity, v)
	case *trace.KV:
		r.kv = v
	case *trace.Content:
		r.contents = append(r.contents, v)
	case *trace.Block:
		r.blocks = append(r.blocks, v)
	case *trace.Fault:
		r.faults = append(r.faults, v)
	default:
		return r.addGraphPart(rec, order)
	}
	return nil
}

func (r *Recording) addAlloc(v *trace.Alloc, order uint64) error {
	if v.Trigger != 0 {
		return nil
	}
	if int(v.ID) != len(r.allocs) {
		return fmt.Errorf("allocation %d after %d others", v.ID, len(r.allocs))
	}
	r.allocs = append(r.allocs, allocation{
		id: v.ID, kind: graphir.AllocKind(v.Kind), addr: v.Addr, size: v.Size,
		born: order, died: noOrder, thread: v.Header().Thread,
	})
	r.steps = append(r.steps, graphir.Step{Alloc: v.ID})
	return nil
}

func (r *Recording) addFree(v *trace.Free, order uint64) error {
	if v.Trigger != 0 {
		return nil
	}
	if int(v.ID) >= len(r.allocs) || r.allocs[v.ID].died != noOrder {
		return fmt.Errorf("free of allocation %d: %w", v.ID, errDangling)
	}
	r.allocs[v.ID].died = order
	r.steps = append(r.steps, graphir.Step{Free: true, Alloc: v.ID})
	return nil
}

func (r *Recording) addGraphPart(rec trace.Record, order uint64) error {
	var id uint32
	switch v := rec.(type) {
	case *trace.Graph:
		g := &capture{Graph: v, order: order, moments: map[uint64]uint64{}}
		for _, m := range r.moments[v.Handle] {
			for _, n := range m.Nodes {
				if _, ok := g.moments[n]; !ok {
					g.moments[n] = m.Header().Order
				}
			}
		}
		delete(r.moments, v.Handle)
		r.graphs = append(r.graphs, g)
		r.byID[v.ID] = g
		return nil
	case *trace.Kernel:
		if r.functions[v.Function] == nil {
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
	case *trace.Edge:
		id = v.Graph
	case *trace.Exec:
		id = v.Graph
	default:
		return nil // a record that compiling has no use for
	}
	g := r.byID[id]
	if g == nil {
		return fmt.Errorf("part of graph %d: %w", id, errDangling)
	}
	switch v := rec.(type) {
	case *trace.Edge:
		g.edges = append(g.edges, v)
	case *trace.Exec:
		g.execs++
		g.flags = v.Flags
	default:
		g.nodes = append(g.nodes, rec)
	}
	return nil
}
