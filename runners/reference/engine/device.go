package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"medusa/internal/cuda"
)

// device is an opened GPU: its primary context, current on the engine's thread, and two streams. compute runs every
// kernel; copies brings the weights in beside it.
type device struct {
	dev     cuda.Device
	ctx     cuda.Context
	name    string
	compute cuda.Stream
	copies  cuda.Stream
}

// openDevice makes the device's primary context current on the calling thread, which the caller has locked.
func openDevice(ordinal int) (*device, error) {
	d := &device{}
	err := func() (err error) {
		if err = cuda.Init(); err != nil {
			return err
		}
		if d.dev, err = cuda.DeviceGet(ordinal); err != nil {
			return err
		}
		if d.name, err = d.dev.Name(); err != nil {
			return err
		}
		if d.ctx, err = d.dev.RetainPrimary(); err != nil {
			return err
		}
		if err = d.ctx.SetCurrent(); err != nil {
			return err
		}
		if d.compute, err = cuda.StreamCreate(cuda.StreamNonBlocking); err != nil {
			return err
		}
		d.copies, err = cuda.StreamCreate(cuda.StreamNonBlocking)
		return err
	}()
	if err != nil {
		return nil, fmt.Errorf("open device %d: %w", ordinal, err)
	}
	return d, nil
}

func (d *device) close() error {
	return errors.Join(d.compute.Destroy(), d.copies.Destroy(), d.dev.ReleasePrimary())
}

// staging is page-locked memory through which small host data reaches the device.
type staging struct {
	host   *cuda.HostBuffer
	stream cuda.Stream
}

// put copies data to the device and waits for it, so that the staging memory is free again.
func (s *staging) put(dst cuda.DevicePtr, data []byte) error {
	for len(data) > 0 {
		n := copy(s.host.Bytes, data)
		if err := cuda.CopyToDeviceAsync(dst, s.host.Bytes[:n], s.stream); err != nil {
			return err
		}
		if err := s.stream.Synchronize(); err != nil {
			return err
		}
		dst, data = dst+cuda.DevicePtr(n), data[n:]
	}
	return nil
}

// get copies len(dst) bytes from the device and waits for them.
func (s *staging) get(dst []byte, src cuda.DevicePtr) error {
	for len(dst) > 0 {
		n := min(len(dst), len(s.host.Bytes))
		if err := cuda.CopyToHostAsync(s.host.Bytes[:n], src, s.stream); err != nil {
			return err
		}
		if err := s.stream.Synchronize(); err != nil {
			return err
		}
		copy(dst, s.host.Bytes[:n])
		dst, src = dst[n:], src+cuda.DevicePtr(n)
	}
	return nil
}

// int32s is a list of integers as the device reads it.
func int32s(values []int32) []byte {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return data
}
