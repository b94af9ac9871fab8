package engine

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
	"medusa/runners/reference/marks"
)

// alignment of every piece of memory that the arena hands out, that of cuMemAlloc.
const alignment = 256

func alignUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// temporaries are allocations of an eager forward: made one by one, freed together when the forward is done.
type temporaries struct{ held []cuda.DevicePtr }

func (t *temporaries) allocate(size uint64) (cuda.DevicePtr, error) {
	p, err := cuda.MemAlloc(size)
	if err == nil {
		t.held = append(t.held, p)
	}
	return p, err
}

// release frees everything; the work that used it must be done.
func (t *temporaries) release() error {
	var err error
	for _, p := range t.held {
		err = errors.Join(err, p.Free())
	}
	t.held = nil
	return err
}

// arena is the memory of the graphs' activations. It is cut from a few large allocations of the capture phase, so graphs
// point into the middle of them, and every graph uses the same memory: they run one after the other.
type arena struct {
	segments []segment
	blocks   []block // handed out since the last reset
}

type segment struct {
	base       cuda.DevicePtr
	size, used uint64
}

type block struct {
	addr cuda.DevicePtr
	size uint64
}

// segmentSize is the granularity of the arena's allocations, that of the driver's physical memory.
const segmentSize = 2 << 20

func (a *arena) allocate(size uint64) (cuda.DevicePtr, error) {
	size = alignUp(size, alignment)
	for i := range a.segments {
		if s := &a.segments[i]; s.size-s.used >= size {
			return a.take(s, size), nil
		}
	}
	capacity := alignUp(size, segmentSize)
	base, err := cuda.MemAlloc(capacity)
	if err != nil {
		return 0, fmt.Errorf("grow graph arena: %w", err)
	}
	a.segments = append(a.segments, segment{base: base, size: capacity})
	return a.take(&a.segments[len(a.segments)-1], size), nil
}

func (a *arena) take(s *segment, size uint64) cuda.DevicePtr {
	addr := s.base + cuda.DevicePtr(s.used)
	s.used += size
	a.blocks = append(a.blocks, block{addr, size})
	marks.Block(addr, size, true)
	return addr
}

// reset takes every block back; the segments stay, for the next graph and for the graphs that point into them.
func (a *arena) reset() {
	for _, b := range a.blocks {
		marks.Block(b.addr, b.size, false)
	}
	a.blocks = a.blocks[:0]
	for i := range a.segments {
		a.segments[i].used = 0
	}
}

// free gives the segments back; no graph that points into them may be launched any more.
func (a *arena) free() error {
	var err error
	for _, s := range a.segments {
		err = errors.Join(err, s.base.Free())
	}
	a.segments = nil
	return err
}
