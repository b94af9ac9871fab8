package probe

import (
	"errors"

	"medusa/internal/cuda"
)

const page = 2 << 20 // the granularity of virtual memory on every device so far

// CUdevice_attribute of the two features.
const (
	virtualMemory = 102
	memoryPools   = 115
)

// mapMemory maps a page: there are devices that claim the feature and refuse the calls (virtual GPUs).
func (d *desk) mapMemory() error {
	if err := attribute(virtualMemory)(d); err != nil {
		return err
	}
	at, err := cuda.MemAddressReserve(page, 0, 0, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.mapAt(at), at.AddressFree(page))
}

func (d *desk) mapAt(at cuda.DevicePtr) error {
	here := cuda.MemLocation{Type: cuda.MemLocationDevice, ID: int32(d.device)}
	memory, err := cuda.MemCreate(page, &cuda.MemAllocationProp{Type: cuda.MemAllocationPinned, Location: here}, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(at.Map(page, 0, memory, 0), memory.Release()); err != nil {
		return err
	}
	err = at.SetAccess(page, []cuda.MemAccessDesc{{Location: here, Flags: cuda.MemAccessReadWrite}})
	return errors.Join(err, at.Unmap(page))
}

// allocateInOrder allocates in a stream's order.
func (d *desk) allocateInOrder() error {
	if err := attribute(memoryPools)(d); err != nil {
		return err
	}
	at, err := cuda.MemAllocAsync(page, d.stream)
	if err != nil {
		return err
	}
	return errors.Join(at.FreeAsync(d.stream), d.stream.Synchronize())
}
