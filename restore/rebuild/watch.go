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
	procUnmaps       = cuda.Process("medusa_watched_unmaps")
	procSuspended    = cuda.Process("medusa_suspended")
	procWatchHandles = cuda.Process("medusa_watch_handles")
	procWatchedEnds  = cuda.Process("medusa_watched_ends")
)

var (
	errFreed  = errors.New("the engine has freed memory that restored graphs refer to")
	errAsleep = errors.New("restored graphs are asleep")
	errEnded  = errors.New("the engine has unloaded a module, or destroyed an event, that restored graphs refer to")
)

// validity is whether graphs may be replayed.
type validity struct {
	invalid error   // why no graph may be replayed any more
	watches []watch // the counters that say so
	unmaps  watch   // of memory that comes back, which counts if the graphs were not asleep

	suspended *atomic.Uint32 // mappings that graphs refer to and that are unmapped; nil: graphs refer to none of the engine's memory
	asleep    bool
}

// watch is one of the interposer's counters of events that end the use of graphs.
type watch struct {
	count  *atomic.Uint32
	before uint32
	why    error
}

// watchOnce watches as long as there are graphs, asleep or not.
func (g *Graphs) watchOnce() error {
	if g.validity.watches != nil {
		return nil
	}
	return g.watch()
}

// watch lets the interposer count the engine's objects that the engine gives up although graphs refer to
// them: allocations, modules, events.
func (g *Graphs) watch() (err error) {
	used := g.spec.Referenced()
	var bases []uint64
	for i, a := range g.spec.Allocations {
		// By name, the tensor's place is known, but not that of the allocation around it: all suballocated allocations count.
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
		v := &g.validity
		if err := v.count(procWatchedFrees, errFreed); err != nil {
			return err
		}
		if v.suspended, err = counter(procSuspended); err != nil {
			return err
		}
		if v.unmaps.count, err = counter(procUnmaps); err != nil {
			return err
		}
		v.unmaps.before = v.unmaps.count.Load()
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

// count adds a counter.
func (v *validity) count(of *cuda.Proc, why error) error {
	count, err := counter(of)
	if err == nil {
		v.watches = append(v.watches, watch{count, count.Load(), why})
	}
	return err
}

// counter returns a counter of the interposer's, which lies in its data and stays there.
func counter(of *cuda.Proc) (*atomic.Uint32, error) {
	at, err := of.Invoke()
	return (*atomic.Uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), err
}

// Usable returns why no graph may be replayed.
func (g *Graphs) Usable() error {
	v := &g.validity
	for i := range v.watches {
		if w := &v.watches[i]; v.invalid == nil && w.count.Load() != w.before {
			v.invalid = w.why
		}
	}
	// mutant: memory that came back while nobody kept what it held
	if c := v.unmaps.count; v.invalid == nil && !v.asleep && c != nil && c.Load() != v.unmaps.before {
		v.invalid = errFreed
	}
	if v.invalid == nil && v.asleep {
		return errAsleep
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
