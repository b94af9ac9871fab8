package restore

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	embedded  []*uint64       // CUgraph slots of graphs that nodes embed a copy of
	context   cuda.Context
	arena     arena
	program   program
}

// template is one CUgraph that serves every graph of its shape, one after the other: the first member adds nodes and
// edges, the others only set parameters. Each member is instantiated on its own, since updating an executable graph
// keeps the attributes and the launch cost of the first.
type template struct {
	graph *uint64  // CUgraph slot
	nodes []uint64 // CUgraphNode slots
}

// build makes an executable graph of every graph of the spec, in the spec's order. On an error everything that was made
// is destroyed.
func (b *builder) build() ([]cuda.GraphExec, int, error) {
	groups := groupByShape(b.spec)
	execs := make([]cuda.GraphExec, len(b.spec.Graphs))
	defer b.arena.release()
	for _, members := range groups {
		if err := b.buildGroup(members, execs); err != nil {
			return nil, 0, errors.Join(err, destroyExecs(execs))
		}
	}
	return execs, len(groups), nil
}

// destroyExecs destroys what was instantiated, last first.
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

func (b *builder) buildGroup(members []int, execs []cuda.GraphExec) (err error) {
	slots, err := place[uint64](&b.arena, 1+len(b.spec.Graphs[members[0]].Nodes)+len(members))
	if err != nil {
		return err
	}
	nodes := len(b.spec.Graphs[members[0]].Nodes)
	t := &template{graph: &slots[0], nodes: slots[1 : 1+nodes]}
	made := slots[1+nodes:]
	defer func() {
		for i, m := range members {
			execs[m] = cuda.GraphExec(made[i])
		}
		for _, graph := range append(b.embedded, t.graph) {
			if *graph != 0 {
				err = errors.Join(err, cuda.Graph(*graph).Destroy())
			}
		}
		b.embedded = nil
	}()
	for i, m := range members {
		g := &b.spec.Graphs[m]
		b.program.reset()
		if err := b.lay(t, g, i == 0, &made[i]); err != nil {
			return fmt.Errorf("build graph %s: %w", g.Label, err)
		}
		if err := b.program.play(g.Label); err != nil {
			return err
		}
	}
	return nil
}

// lay writes the program of one graph: nodes (or, for a later member, their parameters), edges, instantiate, upload.
func (b *builder) lay(t *template, g *graphir.Graph, first bool, exec *uint64) error {
	p := &b.program
	if err := b.layGraph(t, g, first); err != nil {
		return err
	}
	p.add(instantiate, noNode, ptr(exec), slot(t.graph), val(g.InstantiateFlags))
	p.add(upload, noNode, slot(exec), val(0))
	return nil
}

// layGraph writes the part of the program that leaves the graph as recorded.
func (b *builder) layGraph(t *template, g *graphir.Graph, first bool) error {
	if first {
		b.program.add(graphCreate, noNode, ptr(t.graph), val(0))
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
	slots, err := place[uint64](&b.arena, 1+len(g.Nodes))
	if err != nil {
		return err
	}
	child := &template{graph: &slots[0], nodes: slots[1:]}
	b.embedded = append(b.embedded, child.graph)
	if err := b.layGraph(child, g, true); err != nil {
		return fmt.Errorf("embedded graph: %w", err)
	}
	b.program.add(addChildGraphNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), slot(child.graph))
	return nil
}

// layEvent adds a node about an event of the engine's. Members of a template have their events in common.
func (b *builder) layEvent(t *template, i int, n *graphir.Node, add driverCall) error {
	if int(n.Target) >= len(b.events) || b.events[n.Target] == 0 {
		return fmt.Errorf("find event %d: it does not exist in this process", n.Target)
	}
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
			p.add(setKernelParams, i, slot(node), ptr(params))
			return nil
		}
		p.add(addKernelNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params))
		return b.layAttributes(i, node, n.Kernel.Attrs)
	case graphir.NodeMemset:
		params, err := b.memsetParams(n.Memset)
		if err != nil {
			return err
		}
		if !first {
			p.add(setMemsetParams, i, slot(node), ptr(params))
			return nil
		}
		p.add(addMemsetNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params), val(uint64(b.context)))
	case graphir.NodeMemcpy:
		params, err := b.memcpyParams(n.Memcpy)
		if err != nil {
			return err
		}
		if !first {
			p.add(setMemcpyParams, i, slot(node), ptr(params))
			return nil
		}
		p.add(addMemcpyNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params), val(uint64(b.context)))
	case graphir.NodeEmpty:
		if first {
			p.add(addEmptyNode, i, ptr(node), slot(t.graph), val(0), val(0))
		}
	case graphir.NodeChild:
		return b.layChild(t, i, &b.spec.Children[n.Target])
	case graphir.NodeEventRecord, graphir.NodeEventWait:
		add := addEventRecordNode
		if n.Type == graphir.NodeEventWait {
			add = addEventWaitNode
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
	buffer, err := place[byte](&b.arena, len(k.Params))
	if err != nil {
		return nil, err
	}
	copy(buffer, k.Params)
	for i := range k.Fixups {
		if err := b.memory.patch(buffer, &k.Fixups[i]); err != nil {
			return nil, fmt.Errorf("parameter offset %d: %w", k.Fixups[i].Offset, err)
		}
	}
	pointers, err := place[uint64](&b.arena, len(table))
	if err != nil {
		return nil, err
	}
	for i, p := range table {
		if uint64(p.Offset) >= uint64(len(buffer)) {
			return nil, fmt.Errorf("parameter %d at offset %d of %d bytes", i, p.Offset, len(buffer))
		}
		pointers[i] = uint64(uintptr(unsafe.Pointer(&buffer[p.Offset])))
	}
	nodes, err := place[cuda.KernelNodeParams](&b.arena, 1)
	if err != nil {
		return nil, err
	}
	nodes[0] = cuda.KernelNodeParams{
		Func: b.functions[k.Kernel], Grid: k.Grid, Block: k.Block, SharedMemBytes: k.SharedBytes,
		Params: uintptr(unsafe.Pointer(unsafe.SliceData(pointers))),
	}
	return &nodes[0], nil
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
	params[0] = cuda.Memcpy3D{
		SrcMemoryType: memoryType(b.spec, m.Src.Pointer), SrcHost: uintptr(src), SrcDevice: cuda.DevicePtr(src), SrcXInBytes: m.Src.X, SrcY: m.Src.Y, SrcZ: m.Src.Z,
		SrcPitch: m.Src.Pitch, SrcHeight: m.Src.Height,
		DstMemoryType: memoryType(b.spec, m.Dst.Pointer), DstHost: uintptr(dst), DstDevice: cuda.DevicePtr(dst), DstXInBytes: m.Dst.X, DstY: m.Dst.Y, DstZ: m.Dst.Z,
		DstPitch: m.Dst.Pitch, DstHeight: m.Dst.Height,
		WidthInBytes: m.Width, Height: m.Height, Depth: m.Depth,
	}
	return &params[0], nil
}

// memoryType is the CUmemorytype of what a copy reads or writes. The driver looks at the host or at the device address of an
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
			binary.LittleEndian.PutUint64(values[j][:], base)
		}
		b.program.add(setKernelAttribute, i, slot(node), val(uint64(a.ID)), ptr(&values[j]))
	}
	return nil
}

// layEdges adds one call per run of edges. The node slots are the call's arrays themselves: by the time it is made, the
// driver has stored the handles there.
func (b *builder) layEdges(t *template, edges []graphir.Edge) error {
	for _, run := range edgeRuns(edges) {
		data, err := place[cuda.EdgeData](&b.arena, len(run))
		if err != nil {
			return err
		}
		for i, e := range run {
			data[i] = cuda.EdgeData{FromPort: e.FromPort, ToPort: e.ToPort, Type: e.Type}
		}
		b.program.add(addDependencies, noNode, slot(t.graph), ptr(&t.nodes[run[0].From]), ptr(&t.nodes[run[0].To]), ptr(&data[0]), val(uint64(len(run))))
	}
	return nil
}
