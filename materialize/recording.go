package materialize

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

// Recording is one traced start, indexed for compiling. It is what a trace says, nothing derived. What grows with the nodes of
// graphs stays in the file: a walk reads it again, graph by graph.
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
	embedded   map[uint32]bool // graphs that child graph nodes embed
	nesting    map[uint32]int  // how often graphs are embedded in each other below a graph
	tensors    []*trace.Tensor
	notes      []graphir.Note // by name
	identity   []*trace.Identity
	contents   []savedPart
	events     []event
	globals    []global
	variables  map[uint32][]int // globals that are in memory, by module
	byIndex    []int            // set while compiling: globals by their index in the spec
	globalData []savedPart
	bytes      *spill.File           // of both
	tensorMaps map[string]*tensorMap // by their bytes
	blocks     []*trace.Block
	faults     []*trace.Fault
	region     graphir.Region      // where device memory lay
	limits     []*trace.ExactLimit // why it should not lie there
	readyOrder uint64
	timeline   *timeline         // made when it is first needed
	named      []tensorRange     // set while compiling
	joined     map[uint32]uint32 // likewise: the mapping that a mapping lies directly behind
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
	space      graphir.Space // of id: module variables are memory, too
	module     uint32        // a variable's, by the recording's id
	kind       graphir.AllocKind
	addr, size uint64
	born, died uint64
	thread     uint32
	stack      string // of the call
}

type module struct {
	*trace.Module
	names    []string
	key      string // identityKey, once the trace is read
	loaded   uint64 // order of the load record
	unloaded uint64 // order of the unload record
}

// capture is one finished stream capture.
type capture struct {
	*trace.Graph
	order   uint64
	changed map[uint64]bool // nodes whose host memory held something else at `ready`
	execs   int             // how often it was instantiated
	flags   uint64
	parts   // empty but during the walk
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
		byID: map[uint32]*capture{}, embedded: map[uint32]bool{}, nesting: map[uint32]int{}, readyOrder: noOrder, tensorMaps: map[string]*tensorMap{},
		variables: map[uint32][]int{},
		bytes:     &spill.File{Dir: filepath.Dir(path)},
	}
	f.Only(func(t trace.Type) bool { return !walked(t) || t == trace.TypeGraph || t == trace.TypeChild })
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			return r, r.check()
		}
		if err != nil {
			return nil, err
		}
		if err := r.add(rec); errors.As(err, new(*RecordingError)) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("read trace %s: record %d: %w", path, rec.Header().Order, err)
		}
	}
}

// check rejects a trace in which the recorder itself reported a fault.
func (r *Recording) check() error {
	if len(r.faults) > 0 {
		f := r.faults[0]
		return fmt.Errorf("read trace %s: recorder fault in %s: %s (%d faults)", r.path, f.Call, f.Reason, len(r.faults))
	}
	return nil
}

// RecordingError is a trace that is well-formed and says what no driver does, or what compiling would take too long for.
type RecordingError struct {
	Path   string
	Order  uint64 // of the record
	Reason string
}

func (e *RecordingError) Error() string {
	return fmt.Sprintf("read trace %s: record %d: %s", e.Path, e.Order, e.Reason)
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
	case *trace.Event:
		if int(v.ID) != len(r.events) {
			return fmt.Errorf("event %d after %d others", v.ID, len(r.events))
		}
		r.events = append(r.events, event{Event: v, born: order, died: noOrder})
	case *trace.EventGone:
		if int(v.ID) >= len(r.events) {
			return fmt.Errorf("end of event %d: %w", v.ID, errDangling)
		}
		r.events[v.ID].died = order
	case *trace.Global:
		return r.addGlobal(v)
	case *trace.TensorMap:
		r.tensorMaps[string(v.Map)] = &tensorMap{TensorMap: v, addr: v.Addr}
	case *trace.TensorMoved:
		r.moveTensorMap(v)
	case *trace.Unload:
		r.unload(v.ID, order)
	case *trace.Module:
		r.modules[v.ID] = &module{Module: v, loaded: order, unloaded: noOrder}
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
	case *trace.Note:
		r.addNote(v)
	case *trace.Identity:
		r.identity = append(r.identity, v)
	case *trace.KV:
		r.kv = v
	case *trace.Content, *trace.GlobalData:
		return r.addSaved(rec)
	case *trace.Block:
		r.blocks = append(r.blocks, v)
	case *trace.Exact:
		r.region = graphir.Region{Base: v.Base, Size: v.Size}
	case *trace.ExactLimit:
		r.limits = append(r.limits, v)
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
	if err := r.wraps(v.Addr, v.Size, order); err != nil {
		return err
	}
	r.allocs = append(r.allocs, allocation{
		id: v.ID, kind: graphir.AllocKind(v.Kind), addr: v.Addr, size: v.Size,
		born: order, died: noOrder, thread: v.Header().Thread, stack: v.Stack,
	})
	r.steps = append(r.steps, graphir.Step{Alloc: v.ID})
	return nil
}

// wraps refuses memory that ends below its begin.
func (r *Recording) wraps(addr, size, order uint64) error {
	// mutant: memory that wraps around
	if addr+size >= addr {
		return nil
	}
	return &RecordingError{r.path, order, fmt.Sprintf("%d bytes at %#x wrap around", size, addr)}
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

// addGraphPart notes what is known of a graph without its nodes.
func (r *Recording) addGraphPart(rec trace.Record, order uint64) error {
	graph := func(id uint32) (*capture, error) {
		if g := r.byID[id]; g != nil {
			return g, nil
		}
		return nil, fmt.Errorf("part of graph %d: %w", id, errDangling)
	}
	switch v := rec.(type) {
	case *trace.Graph:
		if r.byID[v.ID] != nil {
			return &RecordingError{r.path, order, fmt.Sprintf("graph %d was recorded before", v.ID)}
		}
		g := &capture{Graph: v, order: order}
		r.graphs = append(r.graphs, g)
		r.byID[v.ID] = g
	case *trace.Child:
		return r.addChild(v, order)
	case *trace.HostChanged:
		g, err := graph(v.Graph)
		if err != nil {
			return err
		}
		if g.changed == nil {
			g.changed = map[uint64]bool{}
		}
		g.changed[v.Node] = true
	case *trace.Exec:
		g, err := graph(v.Graph)
		if err != nil {
			return err
		}
		g.execs++
		g.flags = v.Flags
	}
	return nil // or a record that compiling has no use for
}

// addChild takes a child graph node. The recorder walks the graph that each embeds on its own, and before the graph of the node: so
// nodes and embedded graphs are a tree, and compiling them takes no longer than reading them.
func (r *Recording) addChild(v *trace.Child, order uint64) error {
	bad := func(format string, args ...any) error {
		return &RecordingError{r.path, order, fmt.Sprintf(format, args...)}
	}
	parent, child := r.byID[v.Graph], r.byID[v.Child]
	switch {
	case parent == nil:
		return fmt.Errorf("part of graph %d: %w", v.Graph, errDangling)
	case child == nil:
		return fmt.Errorf("node of graph %d: %w", v.Child, errDangling)
	case child.order >= parent.order: // mutant: graph that embeds itself
		return bad("graph %d embeds graph %d, which was not recorded before it", v.Graph, v.Child)
	case r.embedded[v.Child]: // mutant: graph that two nodes embed
		return bad("graph %d is embedded by a second node", v.Child)
	}
	r.embedded[v.Child] = true
	if r.nesting[v.Graph] = max(r.nesting[v.Graph], r.nesting[v.Child]+1); r.nesting[v.Graph] > graphir.MaxNesting {
		return bad("graphs are embedded in each other more than %d times", graphir.MaxNesting)
	}
	return nil
}
