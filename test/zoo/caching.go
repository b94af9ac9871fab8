package main

import (
	"medusa/internal/cuda"
	"medusa/runners/reference/marks"
)

// caching is a small allocator like PyTorch's: it cuts tensors from segments, takes the smallest free block that is large
// enough, and breaks ties by address, which differs from run to run. So equal driver allocations do not make equal
// places, which is its purpose.
type caching struct {
	free []freeBlock
	high bool // ties go to the highest address
}

type freeBlock struct {
	addr cuda.DevicePtr
	size uint64
}

const (
	segmentBytes = 64 << 10
	blockAlign   = 512
)

// allocate returns a block of at least bytes.
func (c *caching) allocate(bytes uint64) (cuda.DevicePtr, error) {
	bytes = (bytes + blockAlign - 1) &^ (blockAlign - 1)
	best := -1
	for i, b := range c.free {
		if b.size >= bytes && (best < 0 || c.before(b, c.free[best])) {
			best = i
		}
	}
	if best < 0 {
		p, err := cuda.MemAlloc(max(bytes, segmentBytes))
		if err != nil {
			return 0, err
		}
		c.free = append(c.free, freeBlock{p, max(bytes, segmentBytes)})
		best = len(c.free) - 1
	}
	b := &c.free[best]
	p := b.addr
	b.addr, b.size = b.addr+cuda.DevicePtr(bytes), b.size-bytes
	marks.Block(p, bytes, true)
	if b.size == 0 {
		c.free = append(c.free[:best], c.free[best+1:]...)
	} else {
		marks.Block(b.addr, b.size, false)
	}
	return p, nil
}

func (c *caching) before(x, y freeBlock) bool {
	if x.size != y.size {
		return x.size < y.size
	}
	return (x.addr < y.addr) != c.high
}

// release takes a block back.
func (c *caching) release(p cuda.DevicePtr, bytes uint64) {
	c.free = append(c.free, freeBlock{p, bytes})
	marks.Block(p, bytes, false)
}

// tie leaves two free segments of one size, so that the next allocation's place depends on their addresses.
func (c *caching) tie() error {
	var segments [2]cuda.DevicePtr
	for i := range segments {
		var err error
		if segments[i], err = c.allocate(segmentBytes); err != nil {
			return err
		}
	}
	for _, p := range segments {
		c.release(p, segmentBytes)
	}
	return nil
}
