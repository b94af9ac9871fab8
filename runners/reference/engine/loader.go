package engine

import (
	"errors"
	"fmt"
	"runtime"

	"medusa/internal/cuda"
	"medusa/runners/reference/kernels"
	"medusa/runners/reference/safetensors"
)

// loader copies the weights to the device from a thread of its own: reading files and copying overlap with each other, and
// with whatever the engine's thread does meanwhile (triggering layers). All its allocations are made and freed by
// the engine's thread, so that their order never depends on timing.
type loader struct {
	buffers [2]*cuda.HostBuffer
	copied  [2]cuda.Event // the buffer's last copy
	done    chan error
	other   bool
}

// chunk is the most that is read and copied at a time.
const chunk = 16 << 20

// startLoader begins to fill the weights. other: with other values than the checkpoint's.
func startLoader(d *device, w *weights, ckpt *safetensors.Checkpoint, storage kernels.Storage, other bool) (*loader, error) {
	l := &loader{done: make(chan error, 1), other: other}
	size := 0
	for _, t := range w.all {
		size = int(min(max(uint64(size), t.size), chunk))
	}
	for i := range l.buffers {
		var err error
		if l.buffers[i], err = cuda.HostAlloc(size); err == nil {
			l.copied[i], err = cuda.EventCreate(cuda.EventDisableTiming)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("allocate staging memory for weights: %w", err), l.free())
		}
	}
	go func() {
		// The thread is not unlocked: it ends with the goroutine and takes its context along.
		runtime.LockOSThread()
		l.done <- l.copyAll(d, w, ckpt, storage)
	}()
	return l, nil
}

// wait returns once every weight is on the device, and frees the loader's memory.
func (l *loader) wait() error { return errors.Join(<-l.done, l.free()) }

func (l *loader) free() error {
	var err error
	for i, b := range l.buffers {
		if b != nil {
			err = errors.Join(err, b.Free())
		}
		if l.copied[i] != 0 {
			err = errors.Join(err, l.copied[i].Destroy())
		}
	}
	return err
}

func (l *loader) copyAll(d *device, w *weights, ckpt *safetensors.Checkpoint, storage kernels.Storage) error {
	if err := d.ctx.SetCurrent(); err != nil {
		return err
	}
	turn := 0
	for _, t := range w.all {
		dst := *t.at
		for _, part := range t.parts {
			from, err := ckpt.Tensor(part.name)
			if err != nil {
				return err
			}
			for at := uint64(0); at < from.Size(); {
				buffer := l.buffers[turn].Bytes
				n := min(from.Size()-at, uint64(len(buffer)))
				if err := l.copied[turn].Synchronize(); err != nil {
					return fmt.Errorf("copy weight %s: %w", part.name, err)
				}
				if err := from.ReadAt(buffer[:n], at); err != nil {
					return err
				}
				if i := notFinite(buffer[:n], storage); i >= 0 { // mutant: weights that are no numbers
					index := at/elements[storage].size + uint64(i)
					return &TensorError{from.File(), part.name, fmt.Sprintf("element %d is infinite or no number (the checkpoint is damaged)", index)}
				}
				if l.other {
					change(buffer[:n], storage)
				}
				if err := errors.Join(cuda.CopyToDeviceAsync(dst, buffer[:n], d.copies), l.copied[turn].Record(d.copies)); err != nil {
					return fmt.Errorf("copy weight %s: %w", part.name, err)
				}
				at, dst, turn = at+n, dst+cuda.DevicePtr(n), 1-turn
			}
		}
	}
	if err := d.copies.Synchronize(); err != nil {
		return fmt.Errorf("copy weights: %w", err)
	}
	return nil
}
