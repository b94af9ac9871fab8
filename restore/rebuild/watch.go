package rebuild

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

var (
	procWatch        = cuda.Process("medusa_watch")
	procWatchedFrees = cuda.Process("medusa_watched_frees")
	procWatchHandles = cuda.Process("medusa_watch_handles")
	procWatchedEnds  = cuda.Process("medusa_watched_ends")
)

var (
	errFreed = errors.New("the engine has freed memory that restored graphs refer to")
	errEnded = errors.New("the engine has unloaded a module, or destroyed an event, that restored graphs refer to")
)

// validity is whether graphs may be replayed.
type validity struct {
	invalid error   // why no graph may be replayed any more
	watches []watch // the counters that say so
}

// watch is one of the interposer's counters of events that end the use of graphs.
type watch struct {
	count  *atomic.Uint32
	before uint32
	why    error
}

// watch lets the interposer count the engine's own objects that it gives up although graphs refer to them: allocations, modules, events.
func (g *Graphs) watch() error {
	used := g.spec.Referenced()
	var bases []uint64
	for i, a := range g.spec.Allocations {
		// By name, the tensor's place is known, and not that of the allocation around it: all suballocated ones count.
		if a.Owner == graphir.OwnerEngine && g.Memory.Base[i] != 0 && (used[i] || a.Suballocated) {
			bases = append(bases, g.Memory.Base[i])
		}
	}
	if len(bases) > 0 {
		n, err := procWatch.Invoke(uintptr(unsafe.Pointer(&bases[0])), uintptr(len(bases)))
		if err != nil {
			return err
		}
		if int(n) != len(bases) {
			return fmt.Errorf("watch allocations: %d of %d are live", n, len(bases))
		}
		if err := g.validity.count(procWatchedFrees, errFreed); err != nil {
			return err
		}
	}
	handles := slices.DeleteFunc(slices.Concat(g.modules, g.events), func(h uint64) bool { return h == 0 })
	if len(handles) == 0 {
		return nil
	}
	if _, err := procWatchHandles.Invoke(uintptr(unsafe.Pointer(&handles[0])), uintptr(len(handles))); err != nil {
		return err
	}
	return g.validity.count(procWatchedEnds, errEnded)
}

// count adds a counter, which lies in the interposer's data and stays there.
func (v *validity) count(counter *cuda.Proc, why error) error {
	at, err := counter.Invoke()
	if err != nil {
		return err
	}
	count := (*atomic.Uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&at)))
	v.watches = append(v.watches, watch{count, count.Load(), why})
	return nil
}

// Usable returns why no graph may be replayed.
func (g *Graphs) Usable() error {
	v := &g.validity
	for i := range v.watches {
		if w := &v.watches[i]; v.invalid == nil && w.count.Load() != w.before {
			v.invalid = w.why
		}
	}
	return v.invalid
}

// Invalidate ends the use of all graphs.
func (g *Graphs) Invalidate(cause error) {
	if g.validity.invalid == nil {
		// mutant: graphs that the engine has called invalid
		g.validity.invalid = cause
	}
}
