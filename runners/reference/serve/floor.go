package serve

import (
	"context"
	"time"

	"medusa/runners/reference/engine"
)

// Floor is the memory that an elastic KV cache leaves to other processes of its device.
type Floor struct {
	Bytes  uint64        // of the device that are to be free
	Wanted uint64        // bytes of the cache if there is room; 0: all of its range
	Every  time.Duration // how often the device is asked
	// Told is called after each change, and after the first of several that failed, with the size since then and the bytes that were free before.
	Told func(size engine.KVSize, free uint64, err error)
}

// KeepFree gives memory of the cache back if less than the floor is free, and takes it again if there is room, up to the size that Resize
// was last asked for. It returns when ctx or the loop ends.
func (l *Loop) KeepFree(ctx context.Context, f Floor) {
	l.wanted.Store(f.Wanted)
	ticks := time.NewTicker(f.Every)
	defer ticks.Stop()
	failed := false
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		case <-l.ended:
			return
		}
		if l.Asleep() != 0 {
			continue
		}
		size, free, err := l.memory()
		bytes := size.Mapped
		if err == nil {
			bytes = wish(size, free, f.Bytes, l.wanted.Load())
		}
		if err == nil && bytes != size.Mapped {
			size, err = l.resize(ctx, bytes)
		} else if err == nil {
			continue
		}
		if err == nil || !failed {
			f.Told(size, free, err)
		}
		failed = err != nil
	}
}

// memory asks the engine and its device.
func (l *Loop) memory() (size engine.KVSize, free uint64, err error) {
	ended := l.Do(func(*Batch) {
		if size, err = l.e.KVSize(); err == nil {
			free, err = l.e.FreeMemory()
		}
	})
	if ended != nil {
		err = ended
	}
	return size, free, err
}

// wish is the size that the cache is to have. It shrinks by all that is missing, and grows by half of the room: another engine with such a cache
// may see the same room.
func wish(size engine.KVSize, free, floor, wanted uint64) uint64 {
	if wanted == 0 || wanted > size.Range {
		wanted = size.Range
	}
	switch {
	// mutant: a device with too little free memory
	case free < floor:
		missing := (floor - free + size.Page - 1) / size.Page * size.Page
		return max(size.Least, size.Mapped-min(missing, size.Mapped))
	// mutant: a cache that has what was wanted
	case size.Mapped < wanted:
		return size.Mapped + min((free-floor)/2, wanted-size.Mapped)/size.Page*size.Page
	}
	return size.Mapped
}
