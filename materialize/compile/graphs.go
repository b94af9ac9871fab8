package compile

import (
	"errors"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/slab"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// shared is the state that compiling one graph shares with the next.
type shared struct {
	a, b       *run
	spec       *graphir.Spec
	kernels    *kernelTable
	prover     *prover // its moment is that of the last node
	contiguous neighbours
	found      []graphir.Relocation // of one node at a time
	deadline   uint64               // record-a: work after this order is skipped online
	room       room
}

// graphCompiler compiles one pair of captures of the same graph.
type graphCompiler struct {
	*shared
	ga, gb  *recording.Body
	out     *graphir.Graph
	label   string // for errors
	index   int    // of out among the graphs
	padding Paddings
	// embedded graphs get their index once everything in them is compiled; padding has unnumbered until then.
	embedded bool
}

// compileGraphs compiles the graphs of both runs, read together one by one, into the Spec: each is encoded as soon as there
// are many of them. seen collects the objects that they refer to.
func compileGraphs(s *shared, scratch graphir.Storage, seen *uses) (pads Paddings, err error) {
	graphsA, graphsB := s.a.instantiated(), s.b.instantiated()
	if len(graphsA) != len(graphsB) {
		return nil, fmt.Errorf("compile: %d graphs in record-a, %d in record-b", len(graphsA), len(graphsB))
	}
	aheadA, err := s.a.Ahead(graphsA)
	if err != nil {
		return nil, err
	}
	defer aheadA.Close()
	aheadB, err := s.b.Ahead(graphsB)
	if err != nil {
		return nil, err
	}
	defer aheadB.Close()
	w := graphir.NewWriter(scratch)
	labels := map[string]bool{}
	for i := range graphsA {
		ga, errA := aheadA.Next()
		gb, errB := aheadB.Next()
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		out := &graphir.Graph{Label: ga.Label, Batch: ga.Batch, InstantiateFlags: ga.InstantiateFlags}
		if out.Label == "" {
			out.Label = fmt.Sprintf("graph-%d", i)
		}
		if ga.Label != gb.Label || ga.Batch != gb.Batch || labels[out.Label] {
			return nil, fmt.Errorf("compile graph %d: label %q (batch %d) in record-a, %q (batch %d) in record-b: labels must agree and be unique",
				i, ga.Label, ga.Batch, gb.Label, gb.Batch)
		}
		labels[out.Label] = true
		c := &graphCompiler{shared: s, ga: ga, gb: gb, out: out, label: out.Label, index: i}
		if err := c.compile(); err != nil {
			return nil, err
		}
		if err := seen.add(out); err != nil {
			return nil, err
		}
		if err := w.Add(out); err != nil {
			return nil, err
		}
		pads = append(pads, c.padding...)
	}
	return pads, w.Finish(s.spec)
}

// instantiated returns the graphs that can be launched. A capture that was never instantiated (or was changed before it
// was, and then recorded again) needs no restoring. Graphs from before the phases that a restored start skips are the
// engine's own: it captures them there, too.
func (r *run) instantiated() []*recording.Capture {
	begin := r.PhaseOrder("warmup", "capture")
	var out []*recording.Capture
	for _, g := range r.Graphs {
		// mutant: graphs that the engine captures in every start
		if g.Execs > 0 && (g.Order > begin || begin == recording.NoOrder) {
			out = append(out, g)
		}
	}
	return out
}

// compile takes the nodes as the driver listed them. If that does not prove the graph, it pairs the nodes of both runs first: pairing
// is seldom needed, and costs more than the rest.
func (c *graphCompiler) compile() error {
	children := len(c.spec.Children)
	listed := c.nodes()
	if listed == nil && len(c.padding) == 0 || len(c.ga.NodeRecords) != len(c.gb.NodeRecords) {
		return listed
	}
	// mutant: nodes in any order
	paired, err := pairNodes(c.prover, c.a, c.b, c.ga, c.gb)
	if err != nil {
		return fmt.Errorf("compile graph %q: %w", c.label, err)
	}
	if paired == c.gb {
		return listed
	}
	c.gb, c.padding, c.spec.Children = paired, nil, c.spec.Children[:children]
	return c.nodes()
}

// nodes compiles the nodes in the order that they have now, and the edges between them.
func (c *graphCompiler) nodes() error {
	if len(c.ga.NodeRecords) != len(c.gb.NodeRecords) {
		return fmt.Errorf("compile graph %q: %d nodes in record-a, %d in record-b", c.label, len(c.ga.NodeRecords), len(c.gb.NodeRecords))
	}
	if c.ga.InstantiateFlags != c.gb.InstantiateFlags {
		return fmt.Errorf("compile graph %q: instantiate flags %#x in record-a, %#x in record-b", c.label, c.ga.InstantiateFlags, c.gb.InstantiateFlags)
	}
	c.out.Nodes = make([]graphir.Node, len(c.ga.NodeRecords))
	for i, na := range c.ga.NodeRecords {
		nb := c.gb.NodeRecords[i]
		if na.RecordType() != nb.RecordType() {
			return fmt.Errorf("compile graph %q: node %d: %v in record-a, %v in record-b", c.label, i, na.RecordType(), nb.RecordType())
		}
		if err := nodeTypes[na.RecordType()].compile(c, i, na, nb, &c.out.Nodes[i]); err != nil {
			return err
		}
	}
	return c.edges()
}

// maxSteps bounds the changes of memory between the moments of nodes. Nodes in the order in which they were captured take one step
// a change; only a trace that a driver could hardly cause takes more than this, some seconds.
const maxSteps = 1 << 28

// pointer decides a word that must be an address.
func (c *graphCompiler) pointer(i int, kind, field string, a, b uint64) (graphir.Pointer, error) {
	p, err := c.proverOf(i)
	if err != nil {
		return graphir.Pointer{}, err
	}
	ptr, isPointer, werr := p.word(a, b)
	if werr == nil && !isPointer {
		werr = &WordError{A: a, B: b, Reason: "it must be an address, but leads to no live allocation"}
	}
	if werr != nil {
		werr.Where = fmt.Sprintf("graph %q node %d %s %s", c.label, i, kind, field)
		return ptr, werr
	}
	return ptr, c.outlives(i, kind, ptr)
}

// proverOf returns the prover, at the moments of both runs at which node i has to be resolved. It holds until the next call.
func (c *graphCompiler) proverOf(i int) (*prover, error) {
	p := c.prover
	// mutant: bound of moments in no order
	if p.steps() > maxSteps {
		return nil, &RefusedError{c.label, i, "node", fmt.Sprintf("memory came and went %d times between this node and those before: nodes are expected in the order in which they were captured", p.steps())}
	}
	return p, p.moveTo(nodeMoment(c.ga, nodeHandle(c.ga.NodeRecords[i])), nodeMoment(c.gb, nodeHandle(c.gb.NodeRecords[i])))
}

// outlives refuses a pointer to memory that a restored process does not have: memory that was gone when the engine was ready (the
// native graph would fault, too), and kinds that no other process can make alike.
func (c *graphCompiler) outlives(i int, kind string, ptr graphir.Pointer) error {
	refuse := func(format string, args ...any) error {
		return &RefusedError{c.label, i, kind, "it refers to " + fmt.Sprintf(format, args...)}
	}
	if ptr.Space == graphir.SpaceTensor {
		return nil // the tensor is live at ready, or naming it fails
	}
	if ptr.Space == graphir.SpaceGlobal {
		switch g := c.a.variable(ptr.Index); {
		case g.Kind == graphir.AllocManaged:
			return refuse("the managed variable %s", g.Name)
		case g.ambiguous:
			return refuse("variable %s of a module whose image was loaded more than once", g.Name)
		case g.Died < c.a.ReadyOrder:
			return refuse("variable %s, whose module was unloaded before the engine was ready", g.Name)
		}
		return nil
	}
	switch al := &c.a.allocs[ptr.Index]; {
	case al.Died < c.a.ReadyOrder && c.a.ReadyOrder != recording.NoOrder: // mutant: memory freed before ready
		return refuse("alloc#%d, which was freed before the engine was ready", ptr.Index)
	case al.Kind == graphir.AllocManaged: // mutant: managed memory
		return refuse("managed memory (alloc#%d)", ptr.Index)
	case al.Kind == graphir.AllocIPC: // mutant: memory of another process
		return refuse("another process's memory (alloc#%d)", ptr.Index)
	case al.Multicast != "": // mutant: memory of a multicast object
		return refuse("memory of a multicast object (alloc#%d, %s)", ptr.Index, al.Multicast)
	case c.contiguous.continuesEngine(c.spec.Allocations, ptr.Index):
		return refuse("a mapping of the capture phase contiguous to one that the engine had made before (alloc#%d): memory may span both", ptr.Index)
	case al.Kind == graphir.AllocRegistered && al.Born > c.deadline: // mutant: host memory registered in the capture phase
		return refuse("host memory that was registered in the capture phase (alloc#%d)", ptr.Index)
	}
	return nil
}

func (c *graphCompiler) edges() error {
	ea, err := edgeIndices(c.ga)
	if err != nil {
		return fmt.Errorf("compile graph %q: record-a: %w", c.label, err)
	}
	eb, err := edgeIndices(c.gb)
	if err != nil {
		return fmt.Errorf("compile graph %q: record-b: %w", c.label, err)
	}
	if !slices.Equal(ea, eb) {
		return fmt.Errorf("compile graph %q: edges differ between the runs", c.label)
	}
	c.out.Edges = ea
	return nil
}

// edgeIndices turns a capture's edges from handles to node indices, sorted: drivers list them in no stable order.
func edgeIndices(g *recording.Body) ([]graphir.Edge, error) {
	find := nodeIndex(g.NodeRecords)
	out := make([]graphir.Edge, 0, len(g.EdgeRecords))
	from, to := uint32(0), uint32(0)
	for _, e := range g.EdgeRecords {
		var okF, okT bool
		from, okF = find(e.From, to)
		to, okT = find(e.To, from+1)
		if !okF || !okT {
			return nil, fmt.Errorf("edge %#x -> %#x: %w", e.From, e.To, recording.ErrDangling)
		}
		out = append(out, graphir.Edge{From: from, To: to, FromPort: e.FromPort, ToPort: e.ToPort, Type: e.Type})
	}
	slices.SortFunc(out, func(x, y graphir.Edge) int {
		if x.From != y.From {
			return int(x.From) - int(y.From)
		}
		return int(x.To) - int(y.To)
	})
	return out, nil
}

// nodeIndex finds the node with a handle. Most graphs are nearly chains, so it looks at a guess first.
func nodeIndex(nodes []trace.Record) func(handle uint64, guess uint32) (uint32, bool) {
	var index map[uint64]uint32
	return func(handle uint64, guess uint32) (uint32, bool) {
		if int64(guess) < int64(len(nodes)) && nodeHandle(nodes[guess]) == handle {
			return guess, true
		}
		if index == nil {
			index = make(map[uint64]uint32, len(nodes))
			for i, n := range nodes {
				index[nodeHandle(n)] = uint32(i)
			}
		}
		i, ok := index[handle]
		return i, ok
	}
}

// room is memory for the nodes of all graphs, which come and go in order: none leaves the rest of a slab unused.
type room struct {
	kernels     slab.Of[graphir.KernelNode]
	bytes       slab.Of[byte]
	relocations slab.Of[graphir.Relocation]
}
