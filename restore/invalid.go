package restore

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

// InvalidError says that a graph must not or cannot be replayed, though the device is fine: the engine runs eagerly, or
// captures anew.
type InvalidError struct {
	Graph string
	Cause error
}

func (e *InvalidError) Error() string { return fmt.Sprintf("replay graph %s: %v", e.Graph, e.Cause) }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Cause }

var (
	errFreed = errors.New("the engine has freed memory that restored graphs refer to")
	errEnded = errors.New("the engine has unloaded a module, or destroyed an event, that restored graphs refer to")
)

// Invalidate ends the use of all restored graphs: the engine has done something that they cannot follow (sleep mode, new weights at
// other addresses, another adapter). Frees of memory, unloads of modules and ends of events that a graph refers to are noticed without it.
func (s *Session) Invalidate(cause error) {
	if s.restored != nil && s.restored.invalid == nil {
		// mutant: graphs that the engine has called invalid
		s.restored.invalid = cause
	}
}

// watch is one of the interposer's counters of events that end the use of graphs.
type watch struct {
	count  *atomic.Uint32
	before uint32
	why    error
}

// watch lets the interposer count the engine's own objects that it gives up although graphs refer to them: allocations, modules, events.
func (r *restoration) watch(spec *graphir.Spec) error {
	used := referenced(spec)
	var bases []uint64
	for i, a := range spec.Allocations {
		// By name, the tensor's place is known, and not that of the allocation around it: all divided ones count.
		if a.Owner == graphir.OwnerEngine && r.memory.base[i] != 0 && (used[i] || a.Suballocated) {
			bases = append(bases, r.memory.base[i])
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
		if err := r.count(procWatchedFrees, errFreed); err != nil {
			return err
		}
	}
	handles := slices.DeleteFunc(slices.Concat(r.modules, r.events), func(h uint64) bool { return h == 0 })
	if len(handles) == 0 {
		return nil
	}
	if _, err := procWatchHandles.Invoke(uintptr(unsafe.Pointer(&handles[0])), uintptr(len(handles))); err != nil {
		return err
	}
	return r.count(procWatchedEnds, errEnded)
}

// count adds a counter, which lies in the interposer's data and stays there.
func (r *restoration) count(counter *cuda.Proc, why error) error {
	at, err := counter.Invoke()
	if err != nil {
		return err
	}
	count := (*atomic.Uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&at)))
	r.watches = append(r.watches, watch{count, count.Load(), why})
	return nil
}

// usable returns why no graph may be replayed.
func (r *restoration) usable() error {
	for i := range r.watches {
		if w := &r.watches[i]; r.invalid == nil && w.count.Load() != w.before {
			r.invalid = w.why
		}
	}
	return r.invalid
}
