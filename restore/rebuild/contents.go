package rebuild

import (
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/memory"
)

// fillContents writes the saved contents of permanent buffers (paper §4.3), pointers inside them resolved. Variables of modules
// are the engine's: their contents are kept first.
func (o *owned) fillContents() error {
	if err := o.keepVariables(); err != nil {
		return err
	}
	// mutant: permanent buffers are filled
	for i := range o.memory.Spec.Contents {
		c := &o.memory.Spec.Contents[i]
		data, err := o.memory.Content(c)
		if err != nil {
			return err
		}
		at, err := o.memory.Address(graphir.Pointer{Index: c.Alloc, Offset: c.Offset, Space: c.Space})
		if err != nil {
			return err
		}
		switch c.Space {
		case graphir.SpaceHost:
			// mutant: bytes of pageable memory
			fillHost(at, data)
		case graphir.SpaceGlobal:
			// mutant: content of a variable
			err = fillStable(at, data, c.Unstable)
		default:
			err = cuda.CopyToDevice(cuda.DevicePtr(at), data)
		}
		if err != nil {
			return fmt.Errorf("fill %s#%d + %d with %d bytes: %w", c.Space, c.Alloc, c.Offset, len(data), err)
		}
	}
	return nil
}

// keepVariables keeps the contents of modules' variables that fillContents is to write over.
func (o *owned) keepVariables() error {
	for i := range o.memory.Spec.Contents {
		c := &o.memory.Spec.Contents[i]
		if c.Space != graphir.SpaceGlobal {
			continue
		}
		if o.kept == nil { // the copy must not run beside work of the engine's streams
			if err := cuda.Synchronize(); err != nil {
				return err
			}
		}
		at, err := o.memory.Address(graphir.Pointer{Index: c.Alloc, Offset: c.Offset, Space: c.Space})
		if err != nil {
			return err
		}
		p, err := memory.Keep(at, uint64(len(c.Data)))
		if err != nil {
			return fmt.Errorf("keep what %s#%d + %d holds: %w", c.Space, c.Alloc, c.Offset, err)
		}
		o.kept = append(o.kept, p)
	}
	return nil
}

// fillStable leaves bytes alone that differed between the recordings: in a variable of the engine's own module the engine
// put them there itself.
func fillStable(at uint64, data []byte, unstable []graphir.Range) error {
	from := uint64(0)
	for _, u := range append(slices.Clone(unstable), graphir.Range{Offset: uint64(len(data))}) {
		if u.Offset > from {
			if err := cuda.CopyToDevice(cuda.DevicePtr(at+from), data[from:u.Offset]); err != nil {
				return err
			}
		}
		from = u.Offset + u.Size
	}
	return nil
}
