package main

import (
	"bytes"
	"fmt"
	"os"

	"medusa/internal/cuda"
)

// library stands for a closed library, and for other bytes that eager steps leave in an engine's memory. Steps run while triggers and
// warm-up do. ZOO_LIBRARY chooses:
//
//	workspace  at its first product on a stream, the library takes a workspace from the framework's allocator and writes there: in a
//	           restored start from the pool of a trigger, natively from a segment of the engine's
//	returned   warm-up leaves bytes in a block that it gives back
//	dropped    the engine gives back a block in the capture phase, with other bytes in it than it had before
//	stray      the same, whose bytes stay, and a graph reads there
//	traces     a triggering layer leaves bytes in a buffer of the engine's, and warm-up does not
type library struct {
	kind       string
	workspaces map[cuda.Stream]cuda.DevicePtr
	block      cuda.DevicePtr // that the engine gives back
	triggered  bool           // a triggering layer runs
}

// allocateLibrary makes the objects that the engine has before the capture phase.
func (z *zoo) allocateLibrary() (err error) {
	l := &z.library
	l.workspaces = map[cuda.Stream]cuda.DevicePtr{}
	switch l.kind = os.Getenv("ZOO_LIBRARY"); l.kind {
	case "", "workspace", "returned", "traces":
	case "dropped", "stray":
		if l.block, err = z.caching.allocate(size); err == nil {
			err = z.leave(l.block, 1)
		}
	default:
		err = fmt.Errorf("ZOO_LIBRARY=%s: see library.go", l.kind)
	}
	return err
}

// leave writes to a buffer.
func (z *zoo) leave(at cuda.DevicePtr, value byte) error {
	return cuda.CopyToDevice(at, bytes.Repeat([]byte{value}, size))
}

// pool is the framework's allocator: a triggering layer has a pool of its own.
func (z *zoo) pool() func(uint64) (cuda.DevicePtr, error) {
	if z.library.triggered {
		return cuda.MemAlloc
	}
	return z.caching.allocate
}

// product is one of the library's in an eager step.
func (z *zoo) product() (err error) {
	l := &z.library
	switch l.kind {
	case "workspace":
		w := l.workspaces[z.stream]
		if w == 0 {
			if w, err = z.pool()(size); err != nil {
				return err
			}
			l.workspaces[z.stream] = w
		}
		return z.leave(w, 2)
	case "returned":
		p, err := z.pool()(size)
		if err == nil {
			err = z.leave(p, 3)
		}
		if err == nil && !l.triggered {
			z.caching.release(p, size)
		}
		return err
	case "traces":
		if l.triggered {
			return z.leave(z.scratch, 4)
		}
	}
	return nil
}

// dropBlock is the engine's work in the capture phase.
func (z *zoo) dropBlock() error {
	l := &z.library
	if l.block == 0 {
		return nil
	}
	if l.kind == "dropped" {
		if err := z.leave(l.block, 6); err != nil {
			return err
		}
	}
	z.caching.release(l.block, size)
	return nil
}
