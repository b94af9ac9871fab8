package main

import (
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/internal/test/programs"
)

var (
	launchKernelEx  = cuda.Driver("cuLaunchKernelEx")
	memcpy3DAsync   = cuda.Driver("cuMemcpy3DAsync_v2")
	memsetD2D8      = cuda.Driver("cuMemsetD2D8Async")
	memsetD2D16     = cuda.Driver("cuMemsetD2D16Async")
	memsetD2D32     = cuda.Driver("cuMemsetD2D32Async")
	memsetD8        = cuda.Driver("cuMemsetD8Async")
	memsetD16       = cuda.Driver("cuMemsetD16Async")
	memsetD32       = cuda.Driver("cuMemsetD32Async")
	recordWithFlags = cuda.Driver("cuEventRecordWithFlags")
	streamWaitEvent = cuda.Driver("cuStreamWaitEvent")
)

const external = 1 // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL

// config mirrors CUlaunchConfig.
type config struct {
	grid, block cuda.Dim3
	shared      uint32
	_           uint32
	stream      cuda.Stream
	attrs       uint64
	count       uint32
	_           uint32
}

// capture records the first n operations on up to three streams that fork from the first and join it again. Each stream
// waits for what its operation depends on elsewhere.
func (p *program) capture(g *programs.Graph, n int) (cuda.Graph, error) {
	streams := p.e.streams
	if err := streams[0].BeginCapture(cuda.CaptureRelaxed); err != nil {
		return 0, err
	}
	if err := p.fork(streams); err != nil {
		return 0, err
	}
	done := make([]cuda.Event, n)
	for j := range n {
		s := streams[g.Streams[j]]
		for _, e := range g.Edges {
			if e.To == j && g.Streams[e.From] != g.Streams[j] {
				if err := s.Wait(done[e.From]); err != nil {
					return 0, fmt.Errorf("wait for operation %d: %w", e.From, err)
				}
			}
		}
		if err := p.issue(&g.Ops[j], s); err != nil {
			return 0, fmt.Errorf("operation %d: %w", j, err)
		}
		var err error
		if done[j], err = p.e.mark(s); err != nil {
			return 0, err
		}
	}
	for _, s := range streams[1:] {
		joined, err := p.e.mark(s)
		if err == nil {
			err = streams[0].Wait(joined)
		}
		if err != nil {
			return 0, fmt.Errorf("join: %w", err)
		}
	}
	return streams[0].EndCapture()
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
		return memcpy3DAsync.Call(uintptr(unsafe.Pointer(c)), uintptr(s))
	case programs.Fill:
		dst, value := uintptr(p.at(op.Dst)), uintptr(op.Value)
		if op.Height > 1 {
			call := map[uint32]*cuda.Proc{1: memsetD2D8, 2: memsetD2D16, 4: memsetD2D32}[op.Elem]
			return call.Call(dst, uintptr(op.DstPitch), value, uintptr(op.Width), uintptr(op.Height), uintptr(s))
		}
		call := map[uint32]*cuda.Proc{1: memsetD8, 2: memsetD16, 4: memsetD32}[op.Elem]
		return call.Call(dst, value, uintptr(op.Width), uintptr(s))
	case programs.Record:
		return recordWithFlags.Call(uintptr(p.events[op.Event]), uintptr(s), external)
	case programs.Wait:
		return streamWaitEvent.Call(uintptr(s), uintptr(p.events[op.Event]), external)
	}
	return fmt.Errorf("operation of kind %d cannot be captured", op.Kind)
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
		attrs = append(attrs, attribute{id: 6, value: [64]byte{1}})
	}
	c, err := alloc[config](&p.e.room)
	if err != nil {
		return err
	}
	*c = config{grid: cuda.Dim3{op.Grid, 1, 1}, block: cuda.Dim3{op.Block, 1, 1}, shared: op.Shared, stream: s, count: uint32(len(attrs))}
	if len(attrs) > 0 {
		room, err := p.e.room.bytes(len(attrs) * int(unsafe.Sizeof(attrs[0])))
		if err != nil {
			return err
		}
		copy(unsafe.Slice((*attribute)(unsafe.Pointer(&room[0])), len(attrs)), attrs)
		c.attrs = addr(room)
	}
	if err := launchKernelEx.Call(uintptr(unsafe.Pointer(c)), uintptr(f), uintptr(list), uintptr(extra)); err != nil {
		return fmt.Errorf("%s: %w", op.Kernel, err)
	}
	return nil
}
