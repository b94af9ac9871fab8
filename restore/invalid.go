package restore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

var (
	procWatch        = cuda.Process("medusa_watch")
	procWatchedFrees = cuda.Process("medusa_watched_frees")
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

var errFreed = errors.New("the engine has freed memory that restored graphs refer to")

// Invalidate ends the use of all restored graphs: the engine has done what they cannot follow (sleep mode, new weights at
// other addresses, another adapter). Frees of memory that a graph refers to are noticed without it.
func (s *Session) Invalidate(cause error) {
	if s.restored != nil && s.restored.invalid == nil {
		s.restored.invalid = cause
	}
}

// watch lets the interposer count frees of the engine's allocations that graphs refer to.
func (r *restoration) watch(spec *graphir.Spec) error {
	used := referenced(spec)
	var bases []uint64
	for i, a := range spec.Allocations {
		// By name, the tensor's place is known, and not that of the allocation around it: all divided ones count.
		if a.Owner == graphir.OwnerEngine && r.memory.base[i] != 0 && (used[i] || a.Divided) {
			bases = append(bases, r.memory.base[i])
		}
	}
	if len(bases) == 0 {
		return nil
	}
	n, err := procWatch.Invoke(uintptr(unsafe.Pointer(&bases[0])), uintptr(len(bases)))
	if err != nil {
		return err
	}
	if int(n) != len(bases) {
		return fmt.Errorf("watch allocations: %d of %d are live", n, len(bases))
	}
	counter, err := procWatchedFrees.Invoke()
	if err != nil {
		return err
	}
	// The counter lies in the interposer's data and stays there.
	r.frees = (*atomic.Uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&counter)))
	r.freesBefore = r.frees.Load()
	return nil
}

// usable returns why no graph may be replayed.
func (r *restoration) usable() error {
	if r.invalid == nil && r.frees != nil && r.frees.Load() != r.freesBefore {
		r.invalid = errFreed
	}
	return r.invalid
}
