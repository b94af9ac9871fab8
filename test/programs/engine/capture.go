package main

import (
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/test/enginekit"
	"medusa/test/programs"
)

// capture records the first operations on up to three streams that fork from the first and join it again, one a node. Each
// stream waits for the operations elsewhere that its operation depends on.
func (p *program) capture(g *programs.Graph, nodes []cuda.Node) (cuda.Graph, error) {
	streams := p.e.streams
	return enginekit.Record(streams[0], cuda.CaptureRelaxed, func() error { return p.issueAll(g, nodes, streams) })
}

func (p *program) issueAll(g *programs.Graph, nodes []cuda.Node, streams []cuda.Stream) error {
	if err := p.fork(streams); err != nil {
		return err
	}
	done := make([]cuda.Event, len(nodes))
	for j := range nodes {
		s := streams[g.Streams[j]]
		for _, e := range g.Edges {
			if e.To == j && g.Streams[e.From] != g.Streams[j] {
				if err := s.Wait(done[e.From]); err != nil {
					return fmt.Errorf("wait for operation %d: %w", e.From, err)
				}
			}
		}
		if err := p.issue(&g.Ops[j], s); err != nil {
			return fmt.Errorf("operation %d: %w", j, err)
		}
		_, last, err := s.Captured()
		if err != nil || len(last) != 1 {
			return fmt.Errorf("operation %d: %d nodes: %w", j, len(last), err)
		}
		nodes[j] = last[0]
		if done[j], err = p.e.mark(s); err != nil {
			return err
		}
	}
	for _, s := range streams[1:] {
		joined, err := p.e.mark(s)
		if err == nil {
			err = streams[0].Wait(joined)
		}
		if err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	return nil
}

func (p *program) fork(streams []cuda.Stream) error {
	forked, err := p.e.mark(streams[0])
	if err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	for _, s := range streams[1:] {
		if err := s.Wait(forked); err != nil {
			return fmt.Errorf("fork: %w", err)
		}
	}
	return nil
}

// mark records one of the engine's own events, which only order the capture. They were created in the prefix.
func (e *engine) mark(s cuda.Stream) (cuda.Event, error) {
	e.next = (e.next + 1) % len(e.marks)
	return e.marks[e.next], e.marks[e.next].Record(s)
}

func (p *program) issue(op *programs.Op, s cuda.Stream) error {
	switch op.Kind {
	case programs.Kernel:
		return p.launch(op, s)
	case programs.Copy:
		c, err := p.copyParams(op)
		if err != nil {
			return err
		}
		return c.CopyAsync(s)
	case programs.Fill:
		return fill(cuda.DevicePtr(p.at(op.Dst)), op, s)
	case programs.MemOps:
		ops, err := p.memOps(op)
		if err != nil {
			return err
		}
		return s.BatchMemOp(ops)
	case programs.Record:
		return p.events[op.Event].RecordWithFlags(s, cuda.EventExternal)
	case programs.Wait:
		return s.WaitEvent(p.events[op.Event], cuda.EventExternal)
	}
	return fmt.Errorf("operation of kind %d cannot be captured", op.Kind)
}

func (p *program) memOps(op *programs.Op) ([]cuda.MemOp, error) {
	room, err := p.e.room.bytes(len(op.Mem) * int(unsafe.Sizeof(cuda.MemOp{})))
	if err != nil {
		return nil, err
	}
	out := unsafe.Slice((*cuda.MemOp)(unsafe.Pointer(&room[0])), len(op.Mem))
	for i, m := range op.Mem {
		out[i] = cuda.MemOp{Operation: cuda.MemOpWrite32, Address: cuda.DevicePtr(p.at(m.At)), Value: m.Value}
		switch {
		case m.Wait && m.Wide:
			out[i].Operation, out[i].Flags = cuda.MemOpWait64, cuda.WaitEqual
		case m.Wait:
			out[i].Operation, out[i].Flags = cuda.MemOpWait32, cuda.WaitEqual
		case m.Wide:
			out[i].Operation = cuda.MemOpWrite64
		}
	}
	return out, nil
}

func fill(dst cuda.DevicePtr, op *programs.Op, s cuda.Stream) error {
	if op.Height > 1 {
		switch op.Elem {
		case 1:
			return cuda.MemsetD2D8Async(dst, op.DstPitch, byte(op.Value), op.Width, op.Height, s)
		case 2:
			return cuda.MemsetD2D16Async(dst, op.DstPitch, uint16(op.Value), op.Width, op.Height, s)
		}
		return cuda.MemsetD2D32Async(dst, op.DstPitch, op.Value, op.Width, op.Height, s)
	}
	switch op.Elem {
	case 1:
		return cuda.MemsetAsync(dst, byte(op.Value), op.Width, s)
	case 2:
		return cuda.MemsetD16Async(dst, uint16(op.Value), op.Width, s)
	}
	return cuda.MemsetD32Async(dst, op.Value, op.Width, s)
}

func (p *program) launch(op *programs.Op, s cuda.Stream) error {
	f, err := p.function(op.Module, op.Kernel)
	if err != nil {
		return err
	}
	list, extra, err := p.lists(op)
	if err != nil {
		return err
	}
	attrs := p.attributesOf(op)
	if op.Serial {
		attrs = append(attrs, cuda.LaunchAttribute{ID: 6, Value: [64]byte{1}})
	}
	c, err := alloc[cuda.LaunchConfig](&p.e.room)
	if err != nil {
		return err
	}
	*c = cuda.LaunchConfig{Grid: cuda.Dim3{op.Grid, 1, 1}, Block: cuda.Dim3{op.Block, 1, 1}, SharedMemBytes: op.Shared, Stream: s, NumAttrs: uint32(len(attrs))}
	if len(attrs) > 0 {
		room, err := p.e.room.bytes(len(attrs) * int(unsafe.Sizeof(attrs[0])))
		if err != nil {
			return err
		}
		copy(unsafe.Slice((*cuda.LaunchAttribute)(unsafe.Pointer(&room[0])), len(attrs)), attrs)
		c.Attrs = uintptr(addr(room))
	}
	if err := f.LaunchEx(c, uintptr(list), uintptr(extra)); err != nil {
		return fmt.Errorf("%s: %w", op.Kernel, err)
	}
	return nil
}
