package main

import (
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/internal/test/programs"
)

var (
	graphCreate      = cuda.Driver("cuGraphCreate")
	addKernelNode    = cuda.Driver("cuGraphAddKernelNode_v2")
	addMemcpyNode    = cuda.Driver("cuGraphAddMemcpyNode")
	addMemsetNode    = cuda.Driver("cuGraphAddMemsetNode")
	addEmptyNode     = cuda.Driver("cuGraphAddEmptyNode")
	addChildNode     = cuda.Driver("cuGraphAddChildGraphNode")
	addHostNode      = cuda.Driver("cuGraphAddHostNode")
	addRecordNode    = cuda.Driver("cuGraphAddEventRecordNode")
	addWaitNode      = cuda.Driver("cuGraphAddEventWaitNode")
	addDependencies  = cuda.Driver("cuGraphAddDependencies_v2")
	setNodeAttribute = cuda.Driver("cuGraphKernelNodeSetAttribute")
	getNodes         = cuda.Driver("cuGraphGetNodes")
)

// build makes a graph of the plan in its way.
func (p *program) build(g *programs.Graph) (cuda.Graph, error) {
	var graph cuda.Graph
	nodes := make([]uintptr, len(g.Ops))
	from := 0
	switch g.Mode {
	case programs.Built:
		if err := graphCreate.Call(uintptr(unsafe.Pointer(&graph)), 0); err != nil {
			return 0, err
		}
	case programs.Captured, programs.Changed:
		from = len(g.Ops)
		if g.Mode == programs.Changed {
			from = g.Split
		}
		var err error
		if graph, err = p.capture(g, from); err != nil {
			return 0, fmt.Errorf("capture: %w", err)
		}
		n := uint64(len(nodes)) // one node an operation, in the order of their capture
		if err := getNodes.Call(uintptr(graph), uintptr(unsafe.Pointer(&nodes[0])), uintptr(unsafe.Pointer(&n))); err != nil {
			return graph, err
		}
		if int(n) != from {
			return graph, fmt.Errorf("capture: %d nodes of %d operations", n, from)
		}
	}
	for i := from; i < len(g.Ops); i++ {
		if err := p.add(graph, &g.Ops[i], &nodes[i]); err != nil {
			return graph, fmt.Errorf("node %d: %w", i, err)
		}
	}
	for _, e := range g.Edges {
		if e.To < from {
			continue
		}
		data := cuda.EdgeData{FromPort: e.Port, Type: e.Type}
		if err := addDependencies.Call(uintptr(graph), uintptr(unsafe.Pointer(&nodes[e.From])), uintptr(unsafe.Pointer(&nodes[e.To])),
			uintptr(unsafe.Pointer(&data)), 1); err != nil {
			return graph, fmt.Errorf("edge %d to %d: %w", e.From, e.To, err)
		}
	}
	return graph, nil
}

func (p *program) add(graph cuda.Graph, op *programs.Op, node *uintptr) error {
	out, g := uintptr(unsafe.Pointer(node)), uintptr(graph)
	switch op.Kind {
	case programs.Kernel:
		return p.addKernel(graph, op, node)
	case programs.Copy:
		c, err := p.copyParams(op)
		if err != nil {
			return err
		}
		return addMemcpyNode.Call(out, g, 0, 0, uintptr(unsafe.Pointer(c)), uintptr(p.e.context))
	case programs.Fill:
		f := &cuda.MemsetNodeParams{Dst: cuda.DevicePtr(p.at(op.Dst)), Pitch: op.DstPitch, Value: op.Value, ElementSize: op.Elem, Width: op.Width, Height: op.Height}
		return addMemsetNode.Call(out, g, 0, 0, uintptr(unsafe.Pointer(f)), uintptr(p.e.context))
	case programs.Empty:
		return addEmptyNode.Call(out, g, 0, 0)
	case programs.Record, programs.Wait:
		call := addRecordNode
		if op.Kind == programs.Wait {
			call = addWaitNode
		}
		return call.Call(out, g, 0, 0, uintptr(p.events[op.Event]))
	case programs.HostCall:
		f, err := cuda.Process("getpid").Addr()
		if err != nil {
			return err
		}
		params := [2]uint64{uint64(f), 0}
		return addHostNode.Call(out, g, 0, 0, uintptr(unsafe.Pointer(&params[0])))
	}
	child, err := p.build(op.Child)
	if err != nil {
		return fmt.Errorf("child graph: %w", err)
	}
	defer child.Destroy()
	return addChildNode.Call(out, g, 0, 0, uintptr(child))
}

func (p *program) addKernel(graph cuda.Graph, op *programs.Op, node *uintptr) error {
	params, err := alloc[cuda.KernelNodeParams](&p.e.room)
	if err != nil {
		return err
	}
	f, err := p.function(op.Module, op.Kernel)
	if err != nil {
		return err
	}
	list, extra, err := p.lists(op)
	if err != nil {
		return err
	}
	*params = cuda.KernelNodeParams{Func: f, Grid: cuda.Dim3{op.Grid, 1, 1}, Block: cuda.Dim3{op.Block, 1, 1}, SharedMemBytes: op.Shared,
		Params: uintptr(list), Extra: uintptr(extra)}
	if p.modules[op.Module].plan.ByKernel && p.plan.Seed%2 == 0 { // the other way to name a kernel
		params.Func, params.Kern, params.Ctx = 0, cuda.Kernel(f), p.e.context
	}
	if err := addKernelNode.Call(uintptr(unsafe.Pointer(node)), uintptr(graph), 0, 0, uintptr(unsafe.Pointer(params))); err != nil {
		return fmt.Errorf("%s: %w", op.Kernel, err)
	}
	for _, a := range p.attributesOf(op) {
		if err := setNodeAttribute.Call(*node, uintptr(a.id), uintptr(unsafe.Pointer(&a.value))); err != nil {
			return fmt.Errorf("%s: attribute %d: %w", op.Kernel, a.id, err)
		}
	}
	return nil
}

const memoryHost = 1 // CU_MEMORYTYPE_HOST

func (p *program) memoryType(b int) uint32 {
	if b >= 0 {
		if k := p.plan.Buffers[b].Kind; k == programs.Pinned || k == programs.Registered {
			return memoryHost
		}
	}
	return cuda.MemoryTypeDevice
}

// copyParams lays a copy out in memory that stays where it is: a graph may read pageable memory at every launch.
func (p *program) copyParams(op *programs.Op) (*cuda.Memcpy3D, error) {
	c, err := alloc[cuda.Memcpy3D](&p.e.room)
	if err != nil {
		return nil, err
	}
	src, dst := p.at(op.Src), p.at(op.Dst)
	*c = cuda.Memcpy3D{SrcMemoryType: p.memoryType(op.Src.Buffer), DstMemoryType: p.memoryType(op.Dst.Buffer),
		SrcPitch: op.SrcPitch, SrcHeight: op.Height, DstPitch: op.DstPitch, DstHeight: op.Height,
		WidthInBytes: op.Width, Height: op.Height, Depth: op.Depth}
	host := op.Host
	if op.HostTable != nil {
		host = p.pointers(op.HostTable)
	}
	if host != nil {
		data, err := p.e.room.bytes(len(host))
		if err != nil {
			return nil, err
		}
		copy(data, host)
		if op.Scribbled {
			p.scribbled = append(p.scribbled, data)
		}
		src, c.SrcMemoryType = addr(data), memoryHost
	}
	if op.ToPageable {
		data, err := p.e.room.bytes(int(op.Width))
		if err != nil {
			return nil, err
		}
		dst, c.DstMemoryType = addr(data), memoryHost
	}
	c.SrcHost, c.SrcDevice, c.DstHost, c.DstDevice = uintptr(src), cuda.DevicePtr(src), uintptr(dst), cuda.DevicePtr(dst)
	return c, nil
}
