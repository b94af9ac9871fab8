package compile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/slab"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// RefusedError is a graph that cannot be restored, found offline: nothing is refused for the first time online.
type RefusedError struct {
	Graph  string
	Node   int
	Type   string
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("materialize graph %q: node %d (%s): %s", e.Graph, e.Node, e.Type, e.Reason)
}

// graphCompiler compiles one pair of captures of the same graph.
type graphCompiler struct {
	a, b    *run
	ga, gb  *recording.Capture
	table   *kernelTable
	out     *graphir.Graph
	label   string // for errors
	index   int    // of out among the graphs
	padding Paddings
	// memory of the nodes
	kernels slab.Of[graphir.KernelNode]
	bytes   slab.Of[byte]
	fixups  slab.Of[graphir.Fixup]
	// embedded graphs get their index once everything in them is compiled; padding has unnumbered until then.
	embedded bool
}

// compile takes the nodes as the driver listed them. If that proves too little, it looks for the pairs first: they are seldom needed,
// and cost more than the rest.
func (c *graphCompiler) compile() error {
	children := len(c.table.spec.Children)
	listed := c.compileListed()
	if listed == nil && len(c.padding) == 0 || len(c.ga.Parts.Nodes) != len(c.gb.Parts.Nodes) {
		return listed
	}
	// mutant: nodes in any order
	changed, err := pairNodes(c.table.prover, c.a, c.b, c.ga, c.gb)
	if err != nil {
		return fmt.Errorf("compile graph %q: %w", c.label, err)
	}
	if !changed {
		return listed
	}
	c.padding, c.table.spec.Children = nil, c.table.spec.Children[:children]
	return c.compileListed()
}

func (c *graphCompiler) compileListed() error {
	if len(c.ga.Parts.Nodes) != len(c.gb.Parts.Nodes) {
		return fmt.Errorf("compile graph %q: %d nodes in run A, %d in run B", c.label, len(c.ga.Parts.Nodes), len(c.gb.Parts.Nodes))
	}
	if c.ga.InstantiateFlags != c.gb.InstantiateFlags {
		return fmt.Errorf("compile graph %q: instantiate flags %#x in run A, %#x in run B", c.label, c.ga.InstantiateFlags, c.gb.InstantiateFlags)
	}
	c.out.Nodes = make([]graphir.Node, len(c.ga.Parts.Nodes))
	for i := range c.ga.Parts.Nodes {
		if err := c.node(i); err != nil {
			return err
		}
	}
	return c.edges()
}

// maxSteps bounds the changes of memory between the moments of nodes. Nodes in the order in which they were captured take one step
// a change; only a trace that a driver could hardly cause takes more than this, some seconds.
const maxSteps = 1 << 28

// prover returns the one of both runs, at the moments at which node i has to be resolved. It holds until the next call.
func (c *graphCompiler) prover(i int) (*prover, error) {
	p := c.table.prover
	// mutant: bound of moments in no order
	if p.steps() > maxSteps {
		return nil, &RefusedError{c.label, i, "node", fmt.Sprintf("memory came and went %d times between this node and those before: nodes are expected in the order in which they were captured", p.steps())}
	}
	return p, p.moveTo(nodeMoment(c.ga, nodeHandle(c.ga.Parts.Nodes[i])), nodeMoment(c.gb, nodeHandle(c.gb.Parts.Nodes[i])))
}

func (c *graphCompiler) node(i int) error {
	out := &c.out.Nodes[i]
	var err error
	switch na := c.ga.Parts.Nodes[i].(type) {
	case *trace.Kernel:
		nb, ok := c.gb.Parts.Nodes[i].(*trace.Kernel)
		if !ok {
			return c.differ(i)
		}
		out.Type = graphir.NodeKernel
		out.Kernel, err = c.kernel(i, na, nb)
	case *trace.Memset:
		nb, ok := c.gb.Parts.Nodes[i].(*trace.Memset)
		if !ok {
			return c.differ(i)
		}
		out.Type = graphir.NodeMemset
		out.Memset, err = c.memset(i, na, nb)
	case *trace.Memcpy:
		nb, ok := c.gb.Parts.Nodes[i].(*trace.Memcpy)
		if !ok {
			return c.differ(i)
		}
		out.Type = graphir.NodeMemcpy
		out.Memcpy, err = c.memcpy(i, na, nb)
	case *trace.Empty:
		if _, ok := c.gb.Parts.Nodes[i].(*trace.Empty); !ok {
			return c.differ(i)
		}
		out.Type = graphir.NodeEmpty
	case *trace.EventNode:
		nb, ok := c.gb.Parts.Nodes[i].(*trace.EventNode)
		if !ok {
			return c.differ(i)
		}
		out.Target, out.Type, err = c.eventNode(i, na, nb)
	case *trace.Child:
		nb, ok := c.gb.Parts.Nodes[i].(*trace.Child)
		if !ok {
			return c.differ(i)
		}
		out.Type = graphir.NodeChild
		out.Target, err = c.child(i, na, nb)
	case *trace.Opaque:
		// mutant: node types that cannot be restored
		return &RefusedError{c.label, i, nodeTypeName(na.Type), na.Reason}
	default:
		return fmt.Errorf("compile graph %q: node %d: unknown record %T", c.label, i, na)
	}
	return err
}

func (c *graphCompiler) differ(i int) error {
	return fmt.Errorf("compile graph %q: node %d: %T in run A, %T in run B", c.label, i, c.ga.Parts.Nodes[i], c.gb.Parts.Nodes[i])
}

func (c *graphCompiler) kernel(i int, na, nb *trace.Kernel) (*graphir.KernelNode, error) {
	fa, fb := c.a.Functions[na.Function], c.b.Functions[nb.Function]
	k, err := c.table.kernel(fa, fb)
	if err != nil {
		return nil, fmt.Errorf("compile graph %q: node %d: %w", c.label, i, err)
	}
	if !slices.Equal(na.Grid, nb.Grid) || !slices.Equal(na.Block, nb.Block) || na.Shared != nb.Shared ||
		len(na.Params) != len(nb.Params) || len(na.Grid) != 3 || len(na.Block) != 3 {
		return nil, fmt.Errorf("compile graph %q: node %d (%s): launch shape differs between the runs", c.label, i, fa.Name)
	}
	node := c.kernels.One()
	*node = graphir.KernelNode{
		Kernel: k, Grid: [3]uint32(na.Grid), Block: [3]uint32(na.Block),
		SharedBytes: na.Shared, Params: c.bytes.Clone(na.Params),
	}
	if node.Attrs, err = c.nodeAttrs(i, na, nb); err != nil {
		return nil, fmt.Errorf("compile graph %q: node %d (%s): %w", c.label, i, fa.Name, err)
	}
	p, err := c.prover(i)
	if err != nil {
		return nil, err
	}
	known, fixups := uint32(0), c.table.fixups[:0]
	for n, param := range c.table.spec.Kernels[k].Params {
		if uint64(param.Offset)+uint64(param.Size) > uint64(len(na.Params)) {
			return nil, fmt.Errorf("compile graph %q: node %d (%s): parameter %d lies outside %d recorded bytes",
				c.label, i, fa.Name, n, len(na.Params))
		}
		if param.Offset >= known+8 {
			if err := c.outside(i, fa.Name, p, na.Params, nb.Params, known, param.Offset); err != nil {
				return nil, err
			}
		}
		known = param.Offset + param.Size
		var werr *WordError
		where := func() string { return fmt.Sprintf("graph %q node %d kernel %s parameter %d", c.label, i, fa.Name, n) }
		pad := func(p Padding) {
			p.Spec, p.embedded, p.graph, p.node, p.Cause.Where = c.table.spec, c.embedded, c.index, i, where()
			c.padding = c.padding.add(p)
		}
		if fixups, werr = p.param(node.Params, na.Params, nb.Params, param.Offset, param.Size, fixups, pad); werr != nil {
			werr.Where = where()
			return nil, werr
		}
	}
	if err := c.outside(i, fa.Name, p, na.Params, nb.Params, known, uint32(len(na.Params))); err != nil {
		return nil, err
	}
	c.table.fixups, node.Fixups = fixups, c.fixups.Clone(fixups)
	for _, f := range node.Fixups {
		if err := c.outlives(i, fa.Name, f.Pointer); err != nil {
			return nil, err
		}
	}
	return node, nil
}

// outside refuses words that belong to no parameter of the layout, unless they are proven constants: they stay as they are.
func (c *graphCompiler) outside(i int, kernel string, p *prover, a, b []byte, from, to uint32) error {
	// mutant: words beside a layout are compared
	for o := (from + 7) &^ 7; o+8 <= to; o += 8 {
		// mutant: words outside of a kernel's layout
		if _, isPointer, err := p.word(binary.LittleEndian.Uint64(a[o:]), binary.LittleEndian.Uint64(b[o:])); err != nil || isPointer {
			return &RefusedError{c.label, i, "kernel " + kernel, fmt.Sprintf(
				"bytes %d to %d of its %d belong to no parameter of the recorded layout, and are no proven constant: an address there would stay as it was",
				o, o+8, len(a))}
		}
	}
	return nil
}

// attrAccessPolicyWindow is CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW; its value begins with an address.
const attrAccessPolicyWindow = 1

func (c *graphCompiler) nodeAttrs(node int, na, nb *trace.Kernel) ([]graphir.NodeAttr, error) {
	if len(na.Attrs) != len(nb.Attrs) {
		return nil, errors.New("node attributes differ between the runs")
	}
	var out []graphir.NodeAttr
	for i, at := range na.Attrs {
		va, vb := at.Value, nb.Attrs[i].Value
		v := graphir.NodeAttr{ID: at.ID}
		if at.ID == attrAccessPolicyWindow && len(va) >= 8 && len(vb) >= 8 {
			base, err := c.pointer(node, "access policy window", "base", binary.LittleEndian.Uint64(va), binary.LittleEndian.Uint64(vb))
			if err != nil {
				return nil, err
			}
			v.Base = &base
			va, vb = append(make([]byte, 8), va[8:]...), append(make([]byte, 8), vb[8:]...)
		}
		if at.ID != nb.Attrs[i].ID || !bytes.Equal(va, vb) || len(va) > len(v.Value) {
			return nil, fmt.Errorf("node attribute %d differs between the runs", at.ID)
		}
		copy(v.Value[:], va)
		out = append(out, v)
	}
	return out, nil
}

// pointer decides a word that must be an address.
func (c *graphCompiler) pointer(i int, kind, field string, a, b uint64) (graphir.Pointer, error) {
	p, err := c.prover(i)
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
		switch g := c.a.global(ptr.Alloc); {
		case g.Kind == graphir.AllocManaged:
			return refuse("the managed variable %s", g.Name)
		case g.ambiguous:
			return refuse("variable %s of a module whose image was loaded more than once", g.Name)
		case g.Died < c.a.ReadyOrder:
			return refuse("variable %s, whose module was unloaded before the engine was ready", g.Name)
		}
		return nil
	}
	switch al := &c.a.allocs[ptr.Alloc]; {
	case al.Died < c.a.ReadyOrder && c.a.ReadyOrder != recording.NoOrder: // mutant: memory freed before ready
		return refuse("alloc#%d, which was freed before the engine was ready", ptr.Alloc)
	case al.Kind == graphir.AllocManaged: // mutant: managed memory
		return refuse("managed memory (alloc#%d)", ptr.Alloc)
	case al.Kind == graphir.AllocIPC: // mutant: memory of another process
		return refuse("another process's memory (alloc#%d)", ptr.Alloc)
	case c.continuesEngine(ptr.Alloc):
		return refuse("a mapping of the capture phase behind one that the engine had made before (alloc#%d): memory may span both", ptr.Alloc)
	case al.Kind == graphir.AllocRegistered && al.Born > c.table.deadline: // mutant: host memory registered in the capture phase
		return refuse("host memory that was registered in the capture phase (alloc#%d)", ptr.Alloc)
	}
	return nil
}

// continuesEngine reports whether the allocation is a mapping of the capture phase in a range that begins with mappings of
// the engine's, which a restored process makes itself.
func (c *graphCompiler) continuesEngine(alloc uint32) bool {
	allocations := c.table.spec.Allocations
	for own := allocations[alloc].Owner; own == graphir.OwnerGraph; {
		at, ok := c.a.joined[alloc]
		if !ok {
			return false
		}
		if allocations[at].Owner != own {
			return true
		}
		alloc = at
	}
	return false
}

func (c *graphCompiler) edges() error {
	ea, err := edgeIndices(c.ga)
	if err != nil {
		return fmt.Errorf("compile graph %q: run A: %w", c.label, err)
	}
	eb, err := edgeIndices(c.gb)
	if err != nil {
		return fmt.Errorf("compile graph %q: run B: %w", c.label, err)
	}
	if !slices.Equal(ea, eb) {
		return fmt.Errorf("compile graph %q: edges differ between the runs", c.label)
	}
	c.out.Edges = ea
	return nil
}

// edgeIndices turns a capture's edges from handles to node indices, sorted: drivers list them in no stable order.
func edgeIndices(g *recording.Capture) ([]graphir.Edge, error) {
	find := nodeIndex(g.Parts.Nodes)
	out := make([]graphir.Edge, 0, len(g.Parts.Edges))
	from, to := uint32(0), uint32(0)
	for _, e := range g.Parts.Edges {
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

var nodeTypeNames = []string{"kernel", "memcpy", "memset", "host function", "child graph", "empty", "event wait",
	"event record", "external semaphore signal", "external semaphore wait", "memory allocation", "memory free",
	"batch memory operation", "conditional"}

func nodeTypeName(t uint32) string {
	if int(t) < len(nodeTypeNames) {
		return nodeTypeNames[t]
	}
	return fmt.Sprintf("node type %d", t)
}
