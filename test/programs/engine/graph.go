package main

import (
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/test/programs"
)

// build makes a graph of the plan in its way.
func (p *program) build(g *programs.Graph) (cuda.Graph, error) {
	var graph cuda.Graph
	var err error
	nodes := make([]cuda.Node, len(g.Ops))
	from := 0
	switch g.Mode {
	case programs.Built:
		if graph, err = cuda.GraphCreate(0); err != nil {
			return 0, err
		}
	case programs.Captured, programs.Changed:
		from = len(g.Ops)
		if g.Mode == programs.Changed {
			from = g.Split
		}
		if graph, err = p.capture(g, nodes[:from]); err != nil {
			return 0, fmt.Errorf("capture: %w", err)
		}
		if n, err := graph.NodeCount(); err != nil || n != from {
			return graph, fmt.Errorf("capture: %d nodes of %d operations: %w", n, from, err)
		}
	}
	for i := from; i < len(g.Ops); i++ {
		if nodes[i], err = p.add(graph, &g.Ops[i]); err != nil {
			return graph, fmt.Errorf("node %d: %w", i, err)
		}
	}
	for _, e := range g.Edges {
		if e.To < from {
			continue
		}
		data := []cuda.EdgeData{{FromPort: e.Port, Type: e.Type}}
		if err := graph.AddDependencies(nodes[e.From:e.From+1], nodes[e.To:e.To+1], data); err != nil {
			return graph, fmt.Errorf("edge %d to %d: %w", e.From, e.To, err)
		}
	}
	return graph, nil
}

func (p *program) add(graph cuda.Graph, op *programs.Op) (cuda.Node, error) {
	switch op.Kind {
	case programs.Kernel:
		return p.addKernel(graph, op)
	case programs.Copy:
		c, err := p.copyParams(op)
		if err != nil {
			return 0, err
		}
		return graph.AddMemcpyNode(nil, c, p.e.context)
	case programs.Fill:
		f := &cuda.MemsetNodeParams{Dst: cuda.DevicePtr(p.at(op.Dst)), Pitch: op.DstPitch, Value: op.Value, ElementSize: op.Elem, Width: op.Width, Height: op.Height}
		return graph.AddMemsetNode(nil, f, p.e.context)
	case programs.MemOps:
		ops, err := p.memOps(op)
		if err != nil {
			return 0, err
		}
		return graph.AddBatchMemOpNode(nil, &cuda.BatchMemOpNodeParams{Ctx: p.e.context, Count: uint32(len(ops)), Ops: uintptr(unsafe.Pointer(&ops[0]))})
	case programs.Empty:
		return graph.AddEmptyNode(nil)
	case programs.Record:
		return graph.AddEventRecordNode(nil, p.events[op.Event])
	case programs.Wait:
		return graph.AddEventWaitNode(nil, p.events[op.Event])
	case programs.HostCall:
		f, err := cuda.Process("getpid").Addr()
		if err != nil {
			return 0, err
		}
		return graph.AddHostNode(nil, &cuda.HostNodeParams{Fn: f})
	}
	child, err := p.build(op.Child)
	if err != nil {
		return 0, fmt.Errorf("child graph: %w", err)
	}
	defer child.Destroy()
	return graph.AddChildGraphNode(nil, child)
}

func (p *program) addKernel(graph cuda.Graph, op *programs.Op) (cuda.Node, error) {
	params, err := alloc[cuda.KernelNodeParams](&p.e.room)
	if err != nil {
		return 0, err
	}
	f, err := p.function(op.Module, op.Kernel)
	if err != nil {
		return 0, err
	}
	list, extra, err := p.lists(op)
	if err != nil {
		return 0, err
	}
	*params = cuda.KernelNodeParams{Func: f, Grid: cuda.Dim3{op.Grid, 1, 1}, Block: cuda.Dim3{op.Block, 1, 1}, SharedMemBytes: op.Shared,
		Params: uintptr(list), Extra: uintptr(extra)}
	if p.modules[op.Module].plan.ByKernel { // a launch takes it for a function, a node does not
		params.Func, params.Kern, params.Ctx = 0, cuda.Kernel(f), p.e.context
	}
	node, err := graph.AddKernelNode(nil, params)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", op.Kernel, err)
	}
	for _, a := range p.attributesOf(op) {
		if err := node.SetAttribute(a.ID, &a.Value); err != nil {
			return 0, fmt.Errorf("%s: attribute %d: %w", op.Kernel, a.ID, err)
		}
	}
	return node, nil
}

func (p *program) memoryType(b int) uint32 {
	if b >= 0 {
		if k := p.plan.Buffers[b].Kind; k == programs.Pinned || k == programs.Registered {
			return cuda.MemoryTypeHost
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
		src, c.SrcMemoryType = addr(data), cuda.MemoryTypeHost
	}
	if op.ToPageable {
		data, err := p.e.room.bytes(int(op.Width))
		if err != nil {
			return nil, err
		}
		dst, c.DstMemoryType = addr(data), cuda.MemoryTypeHost
	}
	c.SrcHost, c.SrcDevice, c.DstHost, c.DstDevice = uintptr(src), cuda.DevicePtr(src), uintptr(dst), cuda.DevicePtr(dst)
	return c, nil
}
