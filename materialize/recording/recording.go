package recording

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"medusa/graphir"
	"medusa/internal/spill"
	"medusa/interpose/trace"
)

// Recording is one traced start, indexed for compiling. It repeats a trace, and derives no facts from it. Data that grows with the
// nodes of graphs stays in the file: a walk reads it again, graph by graph.
type Recording struct {
	Path       string
	Device     *trace.Device
	Beside     *trace.Device // nil unless the process has memory or modules on another device, too
	KV         *trace.KV
	Elastic    *trace.Elastic // nil: the KV cache has one size
	Phases     []Phase
	Allocs     []Allocation // by id
	Steps      []graphir.Step
	Modules    map[uint32]*Module
	Functions  map[uint32]*trace.Function
	Graphs     []*Capture
	ByID       map[uint32]*Capture
	Embedded   map[uint32]bool     // graphs that child graph nodes embed
	results    map[uint32][]string // of the next graph, by thread
	nesting    map[uint32]int      // how often graphs are embedded in each other below a graph
	Tensors    []*trace.Tensor
	Notes      []graphir.Note // by name
	Identity   []*trace.Identity
	Contents   []Saved
	Events     []Event
	Globals    []Global
	variables  map[uint32][]int // globals that are in memory, by module
	GlobalData []Saved
	bytes      *spill.File           // of both
	TensorMaps map[string]*TensorMap // by their bytes
	Blocks     []*trace.Block
	faults     []*trace.Fault
	Region     graphir.Region      // the place of device memory
	Limits     []*trace.ExactLimit // why it should not lie there
	Host       []trace.HostRange   // the process's own memory at ready, by address
	ReadyOrder uint64
	execs      map[uint64]*Capture // of executable graphs, by handle
	updates    []update
}

// NoOrder is the order of an event that never happened.
const NoOrder = math.MaxUint64

// Phase is a mark of the engine.
type Phase struct {
	Name  string
	Order uint64
	Time  uint64
}

// Allocation lives from record born up to, not including, record died.
type Allocation struct {
	ID         uint32
	Space      graphir.Space // of id: module variables are memory, too
	Module     uint32        // a variable's, by the recording's id
	Kind       graphir.AllocKind
	Addr, Size uint64
	Born, Died uint64
	Thread     uint32
	Stack      string // of the call
	Multicast  string // why it is memory of several GPUs; empty: it is of one
}

// Module is a loaded module.
type Module struct {
	*trace.Module
	Names    []string
	key      string // identityKey, once the trace is read
	Loaded   uint64 // order of the load record
	Unloaded uint64 // order of the unload record
}

// Capture is one finished stream capture.
type Capture struct {
	*trace.Graph
	Order            uint64
	Changed          map[uint64]bool // nodes whose host memory held other bytes at `ready`
	Execs            int             // how often it was instantiated
	InstantiateFlags uint64
	Results          []string // names of outputs that it leaves results in
}

// PhaseOrder returns the order of the first mark of any of the named phases, or the last possible order.
func (r *Recording) PhaseOrder(names ...string) uint64 {
	for _, p := range r.Phases {
		for _, n := range names {
			if p.Name == n {
				return p.Order
			}
		}
	}
	return NoOrder
}

// Read reads a whole trace. A trace without its end record (the process died) is an error.
func Read(path string) (*Recording, error) {
	f, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Recording{
		Path: path, Modules: map[uint32]*Module{}, Functions: map[uint32]*trace.Function{},
		ByID: map[uint32]*Capture{}, Embedded: map[uint32]bool{}, nesting: map[uint32]int{}, results: map[uint32][]string{}, ReadyOrder: NoOrder, TensorMaps: map[string]*TensorMap{},
		variables: map[uint32][]int{}, execs: map[uint64]*Capture{},
		bytes: &spill.File{Dir: filepath.Dir(path)},
	}
	f.Only(func(t trace.Type) bool { return !walked(t) || t == trace.TypeGraph || t == trace.TypeChild })
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			return r, r.finish()
		}
		if err != nil {
			return nil, err
		}
		if err := r.add(rec); errors.As(err, new(*Error)) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("read trace %s: record %d: %w", path, rec.Header().Order, err)
		}
	}
}

// finish fills the fields that need the whole trace, and rejects a trace in which the recorder itself reported a fault.
func (r *Recording) finish() error {
	for _, m := range r.Modules {
		m.identify()
	}
	if len(r.faults) > 0 {
		f, more := r.faults[0], ""
		if n := len(r.faults) - 1; n > 0 {
			more = fmt.Sprintf("; %d more of this kind in %s", n, r.Path)
		}
		return fmt.Errorf("record %s: %s%s", f.Call, f.Reason, more)
	}
	return r.checkUpdates()
}

// Error is a trace that is well-formed, and whose claims no driver could cause, or would make compiling take too long.
type Error struct {
	Path   string
	Order  uint64 // of the record
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("read trace %s: record %d: %s", e.Path, e.Order, e.Reason)
}

// ErrDangling is a reference that leads nowhere.
var ErrDangling = errors.New("reference to something not recorded before")

func (r *Recording) add(rec trace.Record) error {
	order := rec.Header().Order
	switch v := rec.(type) {
	case *trace.Device:
		if r.Device == nil {
			r.Device = v
		} else {
			r.Beside = v
		}
	case *trace.Phase:
		r.Phases = append(r.Phases, Phase{v.Name, order, rec.Header().Time})
		if v.Name == "ready" {
			r.ReadyOrder = order
		}
	case *trace.Alloc:
		return r.addAlloc(v, order)
	case *trace.Free:
		return r.addFree(v, order)
	case *trace.Event:
		if int(v.ID) != len(r.Events) {
			return fmt.Errorf("event %d after %d others", v.ID, len(r.Events))
		}
		r.Events = append(r.Events, Event{Event: v, Born: order, Died: NoOrder})
	case *trace.EventGone:
		if int(v.ID) >= len(r.Events) {
			return fmt.Errorf("end of event %d: %w", v.ID, ErrDangling)
		}
		r.Events[v.ID].Died = order
	case *trace.Global:
		return r.addGlobal(v)
	case *trace.TensorMap:
		r.TensorMaps[string(v.Map)] = &TensorMap{TensorMap: v, Addr: v.Addr}
	case *trace.TensorMoved:
		r.moveTensorMap(v)
	case *trace.Unload:
		r.unload(v.ID, order)
	case *trace.Module:
		r.Modules[v.ID] = &Module{Module: v, Loaded: order, Unloaded: NoOrder}
	case *trace.Names:
		m := r.Modules[v.Module]
		if m == nil {
			return fmt.Errorf("names of module %d: %w", v.Module, ErrDangling)
		}
		m.Names = v.Names
	case *trace.Function:
		if r.Modules[v.Module] == nil {
			return fmt.Errorf("function %s of module %d: %w", v.Name, v.Module, ErrDangling)
		}
		r.Functions[v.ID] = v
	case *trace.Tensor:
		r.Tensors = append(r.Tensors, v)
	case *trace.Result:
		// mutant: results of another thread
		r.results[v.Thread] = append(r.results[v.Thread], v.Tensor)
	case *trace.Note:
		r.addNote(v)
	case *trace.Identity:
		r.Identity = append(r.Identity, v)
	case *trace.KV:
		r.KV = v
	case *trace.Elastic:
		r.Elastic = v
	case *trace.Content, *trace.GlobalData:
		return r.addSaved(rec)
	case *trace.Block:
		r.Blocks = append(r.Blocks, v)
	case *trace.Exact:
		r.Region = graphir.Region{Base: v.Base, Size: v.Size}
	case *trace.Multicast:
		if int(v.Alloc) >= len(r.Allocs) {
			return fmt.Errorf("multicast memory in allocation %d: %w", v.Alloc, ErrDangling)
		}
		r.Allocs[v.Alloc].Multicast = v.Reason
	case *trace.ExactLimit:
		r.Limits = append(r.Limits, v)
	case *trace.Host:
		r.Host = v.Ranges
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
	if int(v.ID) != len(r.Allocs) {
		return fmt.Errorf("allocation %d after %d others", v.ID, len(r.Allocs))
	}
	if err := r.wraps(v.Addr, v.Size, order); err != nil {
		return err
	}
	r.Allocs = append(r.Allocs, Allocation{
		ID: v.ID, Kind: graphir.AllocKind(v.Kind), Addr: v.Addr, Size: v.Size,
		Born: order, Died: NoOrder, Thread: v.Header().Thread, Stack: v.Stack,
	})
	r.Steps = append(r.Steps, graphir.Step{Alloc: v.ID})
	return nil
}

// wraps refuses memory that ends below its begin.
func (r *Recording) wraps(addr, size, order uint64) error {
	// mutant: memory that wraps around
	if addr+size >= addr {
		return nil
	}
	return &Error{r.Path, order, fmt.Sprintf("%d bytes at %#x wrap around", size, addr)}
}

func (r *Recording) addFree(v *trace.Free, order uint64) error {
	if v.Trigger != 0 {
		return nil
	}
	if int(v.ID) >= len(r.Allocs) || r.Allocs[v.ID].Died != NoOrder {
		return fmt.Errorf("free of allocation %d: %w", v.ID, ErrDangling)
	}
	r.Allocs[v.ID].Died = order
	r.Steps = append(r.Steps, graphir.Step{Free: true, Alloc: v.ID})
	return nil
}

// addGraphPart notes the facts about a graph without its nodes.
func (r *Recording) addGraphPart(rec trace.Record, order uint64) error {
	graph := func(id uint32) (*Capture, error) {
		if g := r.ByID[id]; g != nil {
			return g, nil
		}
		return nil, fmt.Errorf("part of graph %d: %w", id, ErrDangling)
	}
	switch v := rec.(type) {
	case *trace.Graph:
		if r.ByID[v.ID] != nil {
			return &Error{r.Path, order, fmt.Sprintf("graph %d was recorded before", v.ID)}
		}
		g := &Capture{Graph: v, Order: order, Results: r.results[v.Thread]}
		delete(r.results, v.Thread)
		r.Graphs = append(r.Graphs, g)
		r.ByID[v.ID] = g
	case *trace.Child:
		return r.addChild(v, order)
	case *trace.HostChanged:
		g, err := graph(v.Graph)
		if err != nil {
			return err
		}
		if g.Changed == nil {
			g.Changed = map[uint64]bool{}
		}
		g.Changed[v.Node] = true
	case *trace.Exec:
		g, err := graph(v.Graph)
		if err != nil {
			return err
		}
		g.Execs++
		g.InstantiateFlags = v.Flags
		r.execs[v.Handle] = g
	case *trace.Update:
		to, err := graph(v.Graph)
		if err != nil {
			return err
		}
		if from := r.execs[v.Handle]; from == nil {
			return fmt.Errorf("update of executable graph %#x: %w", v.Handle, ErrDangling)
		} else if from != to {
			r.updates = append(r.updates, update{from, to})
		}
	}
	return nil // or a record that compiling has no use for
}

// addChild takes a child graph node. The recorder walks the graph that each embeds on its own, and before the graph of the node: so
// nodes and embedded graphs are a tree, and compiling them takes no longer than reading them.
func (r *Recording) addChild(v *trace.Child, order uint64) error {
	bad := func(format string, args ...any) error {
		return &Error{r.Path, order, fmt.Sprintf(format, args...)}
	}
	parent, child := r.ByID[v.Graph], r.ByID[v.Child]
	switch {
	case parent == nil:
		return fmt.Errorf("part of graph %d: %w", v.Graph, ErrDangling)
	case child == nil:
		return fmt.Errorf("node of graph %d: %w", v.Child, ErrDangling)
	case child.Order >= parent.Order: // mutant: graph that embeds itself
		return bad("graph %d embeds graph %d, which was not recorded before it", v.Graph, v.Child)
	case r.Embedded[v.Child]: // mutant: graph that two nodes embed
		return bad("graph %d is embedded by a second node", v.Child)
	}
	r.Embedded[v.Child] = true
	if r.nesting[v.Graph] = max(r.nesting[v.Graph], r.nesting[v.Child]+1); r.nesting[v.Graph] > graphir.MaxNesting {
		return bad("graphs are embedded in each other more than %d times", graphir.MaxNesting)
	}
	return nil
}
