package engine

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
	"medusa/runners/reference/safetensors"
)

// memory allocates weights and the KV cache. If the engine may sleep, each allocation has reserved addresses, from which its
// physical memory can go and to which it can come back: captured graphs go on with the same addresses.
type memory struct {
	elastic bool
	device  int
	pieces  []piece
}

// piece is an allocation of elastic memory.
type piece struct {
	at   cuda.DevicePtr
	size uint64
}

func (m *memory) allocate(size uint64) (cuda.DevicePtr, error) {
	if !m.elastic {
		return cuda.MemAlloc(size)
	}
	size = alignUp(size, segmentSize)
	at, err := cuda.MemAddressReserve(size, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	p := piece{at, size}
	if err := m.fill(p); err != nil {
		return 0, errors.Join(err, at.AddressFree(size))
	}
	m.pieces = append(m.pieces, p)
	return at, nil
}

// fill gives a piece new physical memory, which lives until it is unmapped.
func (m *memory) fill(p piece) error {
	here := cuda.MemLocation{Type: cuda.MemLocationDevice, ID: int32(m.device)}
	physical, err := cuda.MemCreate(p.size, &cuda.MemAllocationProp{Type: cuda.MemAllocationPinned, Location: here}, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(p.at.Map(p.size, 0, physical, 0), physical.Release()); err != nil {
		return err
	}
	err = p.at.SetAccess(p.size, []cuda.MemAccessDesc{{Location: here, Flags: cuda.MemAccessReadWrite}})
	if err != nil {
		// mutant: memory that was mapped in vain
		err = errors.Join(err, p.at.Unmap(p.size))
	}
	return err
}

// free gives an allocation back. asleep says that it has no physical memory.
func (m *memory) free(at cuda.DevicePtr, asleep bool) error {
	for _, p := range m.pieces {
		if p.at == at {
			var err error
			if !asleep {
				err = p.at.Unmap(p.size)
			}
			return errors.Join(err, p.at.AddressFree(p.size))
		}
	}
	return at.Free()
}

// ErrNoSleep says that the engine was not started for sleep.
var ErrNoSleep = errors.New("put engine asleep: it was started without --enable-sleep-mode")

// Asleep is the level at which the engine sleeps, or 0.
func (e *Engine) Asleep() int { return e.asleep }

// Sleep gives the memory of weights and KV cache back, and returns its size in bytes. Restored graphs sleep, too. At level 1 the host keeps the weights. At
// level 2 they are read again by Wake. No sequence may be left.
func (e *Engine) Sleep(level int) (uint64, error) {
	switch {
	case !e.memory.elastic:
		return 0, ErrNoSleep
	case level != 1 && level != 2:
		return 0, fmt.Errorf("put engine asleep: level %d is neither 1 nor 2", level)
	case e.asleep != 0:
		return 0, nil
	}
	if err := e.device.compute.Synchronize(); err != nil {
		return 0, err
	}
	if err := e.session.Sleep(); err != nil {
		return 0, err
	}
	if level == 1 {
		e.kept = make([][]byte, len(e.weights.all))
		for i, w := range e.weights.all {
			e.kept[i] = make([]byte, w.size)
			if err := e.staging.get(e.kept[i], *w.at); err != nil {
				return 0, fmt.Errorf("put engine asleep: keep %s: %w", w.name, err)
			}
		}
	}
	freed := uint64(0)
	for _, p := range e.memory.pieces {
		if err := p.at.Unmap(p.size); err != nil {
			return freed, fmt.Errorf("put engine asleep: %w", err)
		}
		freed += p.size
	}
	if r := e.kv.ranges; r != nil {
		bytes, err := r.sleep()
		if err != nil {
			return freed, fmt.Errorf("put engine asleep: %w", err)
		}
		freed += bytes
	}
	e.asleep = level
	return freed, nil
}

// Wake undoes Sleep. If the device has no room, the engine sleeps on. An elastic KV cache takes as much of its memory as there is.
func (e *Engine) Wake() error {
	if e.asleep == 0 {
		return nil
	}
	for i, p := range e.memory.pieces {
		if err := e.memory.fill(p); err != nil {
			return errors.Join(fmt.Errorf("wake engine: %w", err), unmapAll(e.memory.pieces[:i]))
		}
	}
	if r := e.kv.ranges; r != nil {
		if err := r.wake(); err != nil {
			return errors.Join(fmt.Errorf("wake engine: %w", err), unmapAll(e.memory.pieces))
		}
		e.kv.resized(r.blocksIn(r.pages()))
	}
	if err := e.refill(); err != nil {
		return fmt.Errorf("wake engine: %w", err)
	}
	e.asleep, e.kept = 0, nil
	// mutant: graphs of an engine that wakes
	_, err := e.session.Wake(true)
	return err
}

func unmapAll(pieces []piece) (err error) {
	for _, p := range pieces {
		err = errors.Join(err, p.at.Unmap(p.size))
	}
	return err
}

// refill brings the weights back.
func (e *Engine) refill() error {
	if e.asleep == 1 {
		for i, w := range e.weights.all {
			// mutant: weights after a sleep
			if err := e.staging.put(*w.at, e.kept[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if e.options.Model == "" {
		return nil // a preset has no weights
	}
	checkpoint, err := safetensors.Open(e.options.Model)
	if err != nil {
		return err
	}
	l, err := startLoader(e.device, e.weights, checkpoint, e.storage, false)
	if err == nil {
		err = l.wait()
	}
	return errors.Join(err, checkpoint.Close())
}
