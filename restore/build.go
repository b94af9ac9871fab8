package restore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// builder turns graphs of the IR into programs of driver calls and runs them.
type builder struct {
	spec      *graphir.Spec
	memory    *memory
	functions []cuda.Function // by kernel index
	events    []uint64        // CUevent by event index
	context   cuda.Context
	slots     arena // handles, zero until the driver stores them
	*sheet          // being written
}

// sheet holds the program of one graph and the targets of its calls' pointers. The driver copies all of it in the call, so a sheet is
// used again for a later graph: it stays in the processor's cache.
type sheet struct {
	program  program
	arena    arena
	embedded []*uint64 // CUgraph slots of graphs that nodes embed a copy of
}

func (s *sheet) reset() {
	s.program.reset()
	s.arena.reset()
	s.embedded = nil
}

// template is one CUgraph that serves every graph of its shape, one after the other: the first member adds nodes and
// edges, the others only set parameters. Each member is instantiated on its own, since updating an executable graph
// keeps the attributes and the launch cost of the first.
type template struct {
	graph *uint64  // CUgraph slot
	nodes []uint64 // CUgraphNode slots
}

// page is a sheet on its way from the goroutine that writes programs to the one that plays them.
type page struct {
	*sheet
	graph    int
	last     bool // of its template
	template *template
	exec     *uint64
	err      error
}

// build makes an executable graph of every graph in the groups, by index; members of a group have one shape. On an error everything that was made
// is destroyed. The driver takes one thread at a time through its graph calls, so those are made here, while the program
// of the next graph is written beside.
func (b *builder) build(groups [][]int) ([]cuda.GraphExec, error) {
	execs := make([]cuda.GraphExec, len(b.spec.Graphs))
	pages, blank, stop := make(chan page), make(chan *sheet, 2), make(chan struct{})
	var sheets [2]sheet
	for i := range sheets {
		blank <- &sheets[i]
	}
	go b.write(groups, pages, blank, stop)
	var err error
	for p := range pages {
		if err != nil {
			continue // the writer is about to stop
		}
		if err = p.err; err == nil {
			err = p.program.play(b.spec.Graphs[p.graph].Label)
		}
		execs[p.graph] = cuda.GraphExec(*p.exec)
		if p.last || err != nil {
			err = errors.Join(err, destroyGraphs(append(p.embedded, p.template.graph)))
		}
		if err != nil {
			close(stop)
			continue
		}
		blank <- p.sheet
	}
	for i := range sheets {
		sheets[i].arena.release()
	}
	b.slots.release()
	if err != nil {
		return nil, errors.Join(err, destroyExecs(execs))
	}
	return execs, nil
}

// write writes the programs of all graphs, group by group.
func (b *builder) write(groups [][]int, pages chan<- page, blank <-chan *sheet, stop <-chan struct{}) {
	defer close(pages)
	cursor := b.spec.NewCursor()
	for _, members := range groups {
		nodes := b.spec.Nodes(members[0])
		slots, err := place[uint64](&b.slots, 1+nodes+len(members))
		var t *template
		if err == nil {
			t = &template{graph: &slots[0], nodes: slots[1 : 1+nodes]}
		} else {
			t, slots = &template{graph: new(uint64)}, make([]uint64, 1+nodes+len(members))
		}
		for i, m := range members {
			select {
			case b.sheet = <-blank:
			case <-stop:
				return
			}
			b.sheet.reset()
			exec := &slots[1+nodes+i]
			if err == nil {
				// mutant: panics of our own goroutines
				err = guarded(func() error { // nobody else could catch a panic of this goroutine
					g, err := cursor.Graph(m)
					if err != nil {
						return err
					}
					return b.lay(t, g, i == 0, exec)
				})
			}
			if err != nil {
				err = fmt.Errorf("build graph %s: %w", b.spec.Graphs[m].Label, err)
			}
			select {
			case pages <- page{b.sheet, m, i == len(members)-1, t, exec, err}:
			case <-stop:
				return
			}
			if err != nil {
				return
			}
		}
	}
}

// destroyGraphs destroys the graphs in the slots that hold one.
func destroyGraphs(slots []*uint64) error {
	var err error
	for _, graph := range slots {
		if *graph != 0 {
			err = errors.Join(err, cuda.Graph(*graph).Destroy())
		}
	}
	return err
}

// destroyExecs destroys the executable graphs made so far, last first.
func destroyExecs(execs []cuda.GraphExec) error {
	var first error
	for i := len(execs) - 1; i >= 0; i-- {
		if execs[i] == 0 {
			continue
		}
		if err := execs[i].Destroy(); err != nil && first == nil {
			first = fmt.Errorf("destroy executable graph %d: %w", i, err)
		}
		execs[i] = 0
	}
	return first
}

// lay writes the program of one graph: nodes (or, for a later member, their parameters), edges, instantiate, upload.
func (b *builder) lay(t *template, g *graphir.Graph, first bool, exec *uint64) error {
	p := &b.program
	p.calls, p.steps = slices.Grow(p.calls, len(g.Nodes)+4), slices.Grow(p.steps, len(g.Nodes)+4)
	if err := b.layGraph(t, g, first); err != nil {
		return err
	}
	p.add(cuda.EntryGraphInstantiateWithFlags, noNode, ptr(exec), slot(t.graph), val(g.InstantiateFlags))
	p.add(cuda.EntryGraphUpload, noNode, slot(exec), val(0))
	return nil
}

// layGraph writes the part of the program that leaves the graph as recorded.
func (b *builder) layGraph(t *template, g *graphir.Graph, first bool) error {
	if first {
		b.program.add(cuda.EntryGraphCreate, noNode, ptr(t.graph), val(0))
	}
	for i := range g.Nodes {
		if err := b.layNode(t, i, &g.Nodes[i], first); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	if !first {
		return nil
	}
	return b.layEdges(t, g.Edges)
}

// layChild makes the graph that a node embeds; the driver copies it into the node.
func (b *builder) layChild(t *template, i int, g *graphir.Graph) error {
	slots, err := place[uint64](&b.slots, 1+len(g.Nodes))
	if err != nil {
		return err
	}
	child := &template{graph: &slots[0], nodes: slots[1:]}
	b.embedded = append(b.embedded, child.graph)
	if err := b.layGraph(child, g, true); err != nil {
		return fmt.Errorf("embedded graph: %w", err)
	}
	b.program.add(cuda.EntryGraphAddChildGraphNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), slot(child.graph))
	return nil
}

// layEvent adds a node about an event of the engine's. Members of a template have their events in common.
func (b *builder) layEvent(t *template, i int, n *graphir.Node, add cuda.Entry) error {
	if int(n.Target) >= len(b.events) || b.events[n.Target] == 0 {
		return fmt.Errorf("find event %d: it does not exist in this process", n.Target)
	}
	// mutant: event of the engine
	b.program.add(add, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), val(b.events[n.Target]))
	return nil
}

func (b *builder) layNode(t *template, i int, n *graphir.Node, first bool) error {
	p, node := &b.program, &t.nodes[i]
	switch n.Type {
	case graphir.NodeKernel:
		params, err := b.kernelParams(n.Kernel)
		if err != nil {
			return err
		}
		if !first {
			p.add(cuda.EntryGraphKernelNodeSetParams, i, slot(node), ptr(params))
			return nil
		}
		p.add(cuda.EntryGraphAddKernelNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params))
		return b.layAttributes(i, node, n.Kernel.Attrs)
	case graphir.NodeMemset:
		params, err := b.memsetParams(n.Memset)
		if err != nil {
			return err
		}
		if !first {
			p.add(cuda.EntryGraphMemsetNodeSetParams, i, slot(node), ptr(params))
			return nil
		}
		p.add(cuda.EntryGraphAddMemsetNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params), val(uint64(b.context)))
	case graphir.NodeMemcpy:
		params, err := b.memcpyParams(n.Memcpy)
		if err != nil {
			return err
		}
		if !first {
			p.add(cuda.EntryGraphMemcpyNodeSetParams, i, slot(node), ptr(params))
			return nil
		}
		p.add(cuda.EntryGraphAddMemcpyNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params), val(uint64(b.context)))
	case graphir.NodeEmpty:
		if first {
			// mutant: empty node
			p.add(cuda.EntryGraphAddEmptyNode, i, ptr(node), slot(t.graph), val(0), val(0))
		}
	case graphir.NodeChild:
		// mutant: embedded graph
		return b.layChild(t, i, &b.spec.Children[n.Target])
	case graphir.NodeEventRecord, graphir.NodeEventWait:
		add := cuda.EntryGraphAddEventRecordNode
		// mutant: event record and event wait
		if n.Type == graphir.NodeEventWait {
			add = cuda.EntryGraphAddEventWaitNode
		}
		if first {
			return b.layEvent(t, i, n, add)
		}
	default:
		return fmt.Errorf("node type %d cannot be built", n.Type)
	}
	return nil
}

// kernelParams lays the launch out in the arena: the parameter buffer with its pointers patched in place, and the array
// of pointers into it that the driver reads.
func (b *builder) kernelParams(k *graphir.KernelNode) (*cuda.KernelNodeParams, error) {
	table := b.spec.Kernels[k.Kernel].Params
	if n := len(table); n > 0 && uint64(table[n-1].Offset) >= uint64(len(k.Params)) { // they stand by ascending offset
		return nil, fmt.Errorf("parameter %d at offset %d of %d bytes", n-1, table[n-1].Offset, len(k.Params))
	}
	pointersAt := (len(k.Params) + 7) &^ 7
	nodeAt := pointersAt + 8*len(table)
	room, err := b.arena.bytes(nodeAt + int(unsafe.Sizeof(cuda.KernelNodeParams{})))
	if err != nil {
		return nil, err
	}
	buffer := room[:len(k.Params)]
	copy(buffer, k.Params)
	if err := b.memory.patch(buffer, k.Fixups); err != nil {
		return nil, fmt.Errorf("parameter %w", err)
	}
	start := uint64(uintptr(unsafe.Pointer(&room[0])))
	pointers := unsafe.Slice((*uint64)(unsafe.Pointer(&room[pointersAt])), len(table))
	for i := range pointers {
		pointers[i] = start + uint64(table[i].Offset)
	}
	node := (*cuda.KernelNodeParams)(unsafe.Pointer(&room[nodeAt]))
	*node = cuda.KernelNodeParams{
		// mutant: kernel of a template's member
		Func: b.functions[k.Kernel], Grid: k.Grid, Block: k.Block, SharedMemBytes: k.SharedBytes, Params: uintptr(start) + uintptr(pointersAt),
	}
	return node, nil
}

func (b *builder) memsetParams(m *graphir.MemsetNode) (*cuda.MemsetNodeParams, error) {
	dst, err := b.memory.address(m.Dst)
	if err != nil {
		return nil, err
	}
	params, err := place[cuda.MemsetNodeParams](&b.arena, 1)
	if err != nil {
		return nil, err
	}
	// mutant: values and rows of a memset
	params[0] = cuda.MemsetNodeParams{Dst: cuda.DevicePtr(dst), Pitch: m.Pitch, Value: m.Value, ElementSize: m.ElemSize, Width: m.Width, Height: m.Height}
	return &params[0], nil
}

func (b *builder) memcpyParams(m *graphir.MemcpyNode) (*cuda.Memcpy3D, error) {
	src, err := b.memory.address(m.Src.Pointer)
	if err != nil {
		return nil, err
	}
	dst, err := b.memory.address(m.Dst.Pointer)
	if err != nil {
		return nil, err
	}
	params, err := place[cuda.Memcpy3D](&b.arena, 1)
	if err != nil {
		return nil, err
	}
	// mutant: height and depth of a copy
	params[0] = cuda.Memcpy3D{
		SrcMemoryType: memoryType(b.spec, m.Src.Pointer), SrcHost: uintptr(src), SrcDevice: cuda.DevicePtr(src), SrcXInBytes: m.Src.X, SrcY: m.Src.Y, SrcZ: m.Src.Z,
		SrcPitch: m.Src.Pitch, SrcHeight: m.Src.Height,
		DstMemoryType: memoryType(b.spec, m.Dst.Pointer), DstHost: uintptr(dst), DstDevice: cuda.DevicePtr(dst), DstXInBytes: m.Dst.X, DstY: m.Dst.Y, DstZ: m.Dst.Z,
		DstPitch: m.Dst.Pitch, DstHeight: m.Dst.Height,
		// mutant: memcpy nodes
		WidthInBytes: m.Width, Height: m.Height, Depth: m.Depth,
	}
	return &params[0], nil
}

// memoryType is the CUmemorytype of a copy's source or destination. The driver looks at the host or at the device address of an
// end, as the type says.
func memoryType(spec *graphir.Spec, p graphir.Pointer) uint32 {
	if p.Space == graphir.SpaceHost {
		return memoryTypeHost
	}
	if p.Space == graphir.SpaceAlloc {
		if kind := spec.Allocations[p.Alloc].Kind; kind == graphir.AllocPinned || kind == graphir.AllocRegistered {
			return memoryTypeHost
		}
	}
	return cuda.MemoryTypeDevice
}

// memoryTypeHost is CU_MEMORYTYPE_HOST.
const memoryTypeHost = 1

// layAttributes sets the recorded node attributes, cluster dimensions and priorities among them.
func (b *builder) layAttributes(i int, node *uint64, attrs []graphir.NodeAttr) error {
	values, err := place[cuda.LaunchAttributeValue](&b.arena, len(attrs))
	if err != nil {
		return err
	}
	for j, a := range attrs {
		values[j] = a.Value
		if a.Base != nil {
			base, err := b.memory.address(*a.Base)
			if err != nil {
				return fmt.Errorf("attribute %d: %w", a.ID, err)
			}
			// mutant: base of an access-policy window
			binary.LittleEndian.PutUint64(values[j][:], base)
		}
		// mutant: attribute of a node
		b.program.add(cuda.EntryGraphKernelNodeSetAttribute, i, slot(node), val(uint64(a.ID)), ptr(&values[j]))
	}
	return nil
}

// layEdges adds one call per run of edges. The node slots are the call's arrays themselves: by the time it is made, the
// driver has stored the handles there.
func (b *builder) layEdges(t *template, edges []graphir.Edge) error {
	// mutant: edges of a fork and join
	for _, run := range edgeRuns(edges) {
		data, err := place[cuda.EdgeData](&b.arena, len(run))
		if err != nil {
			return err
		}
		for i, e := range run {
			// mutant: data of an edge
			data[i] = cuda.EdgeData{FromPort: e.FromPort, ToPort: e.ToPort, Type: e.Type}
		}
		b.program.add(cuda.EntryGraphAddDependencies, noNode, slot(t.graph), ptr(&t.nodes[run[0].From]), ptr(&t.nodes[run[0].To]), ptr(&data[0]), val(uint64(len(run))))
	}
	return nil
}
