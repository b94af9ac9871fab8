package check

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"medusa/internal/cuda"
	"medusa/restore/devicehash"
	"medusa/restore/digest"
	"medusa/restore/live"
)

// trialBytes is hashed on both sides to see which is faster. Hardware hashes as fast as it reads; a simulated device does not.
const trialBytes = 4 << 20

// chooseFaster has memory hashed on the device or on the host, and keeps the other side at hand.
func (c *Checker) chooseFaster() error {
	if err := c.chooseHash(); err != nil || c.hasher.device == nil {
		return err
	}
	return live.InTrigger(func() error {
		at, err := cuda.MemAlloc(trialBytes)
		if err != nil {
			return fmt.Errorf("measure hashing: %w", err)
		}
		device, host, err := c.hasher.measure(at)
		if err = errors.Join(err, at.Free()); err == nil && host < device {
			c.hasher.device, c.hasher.spare = nil, c.hasher.device
		}
		return err
	})
}

// trials is the number of measurements of each side: on a busy machine, a single one may take any time.
const trials = 3

func (h *hasher) measure(at cuda.DevicePtr) (device, host time.Duration, err error) {
	device, host = time.Hour, time.Hour
	for range trials {
		began := time.Now()
		if _, err = h.device.Hash([]devicehash.Range{{Addr: uint64(at), Size: trialBytes, Stride: 1, Chunk: digest.ChunkBytes}}); err != nil {
			return 0, 0, err
		}
		device = min(device, time.Since(began))
		began = time.Now()
		data := make([]byte, trialBytes)
		if err = h.read(data, at); err != nil {
			return 0, 0, err
		}
		for ; len(data) > 0; data = data[digest.ChunkBytes:] {
			digest.Sum(data[:digest.ChunkBytes])
		}
		host = min(host, time.Since(began))
	}
	return device, host, nil
}

// crossCheck hashes the same memory on the other side.
func (c *Checker) crossCheck(ranges []digest.Range, classes []digest.Class) error {
	h := c.hasher
	if h.device == nil && h.spare == nil {
		return nil
	}
	h.device, h.spare = h.spare, h.device
	again, err := c.hashOf(0, classes...)
	h.device, h.spare = h.spare, h.device
	if err != nil {
		return err
	}
	for i := range ranges {
		if !bytes.Equal(ranges[i].First, again[i].First) {
			return fmt.Errorf("hash allocation %d + %d: the device and the host disagree", ranges[i].Alloc, ranges[i].Offset)
		}
	}
	return nil
}
