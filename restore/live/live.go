// Package live reads the interposer's records of this process: its allocations and frees in order, its modules, events and captured
// graphs, and the names that the engine gave. The records leave out calls inside of a trigger scope.
//
// In: the process itself. Out: plain values (internal/contract). Fails if the interposer is not loaded, with a *cuda.MissingError.
package live

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"medusa/internal/contract"
	"medusa/internal/cuda"
)

// The functions of interpose/preload/medusa.h that this file calls. They live in the preloaded library.
var (
	procAllocCount       = cuda.Process("medusa_alloc_count")
	procAllocGet         = cuda.Process("medusa_alloc_get")
	procSequence         = cuda.Process("medusa_sequence")
	procEventCount       = cuda.Process("medusa_event_count")
	procEventGet         = cuda.Process("medusa_event_get")
	procModuleCount      = cuda.Process("medusa_module_count")
	procModuleGet        = cuda.Process("medusa_module_get")
	procModuleHash       = cuda.Process("medusa_module_hash")
	procMarkCommunicator = cuda.Process("medusa_mark_communicator")
	procTriggerBegin     = cuda.Process("medusa_trigger_begin")
	procTriggerEnd       = cuda.Process("medusa_trigger_end")
	procTriggerFunctions = cuda.Process("medusa_trigger_functions")
	procTriggerLaunches  = cuda.Process("medusa_trigger_launches")
	procGraphCount       = cuda.Process("medusa_graph_count")
	procGraphGet         = cuda.Process("medusa_graph_get")
	procExactGet         = cuda.Process("medusa_exact_get")
)

// Play is the player of programs (interpose/preload/medusa.h).
var Play = cuda.Process("medusa_play")

// ErrAbsent says that the process was not started by medusa.
var ErrAbsent = errors.New("find medusa_play: the interposer is not loaded (start the engine with medusa restore)")

// Present reports whether the preloaded library is there and offers everything a restore needs.
func Present() bool { return Play.Present() && procSequence.Present() }

// Alloc is an allocation of this process.
type Alloc = contract.Alloc

// Allocations reads the process's allocation map.
func Allocations() ([]Alloc, error) {
	n, err := procAllocCount.Invoke()
	if err != nil {
		return nil, err
	}
	all := make([]Alloc, n)
	for i := range all {
		r, err := procAllocGet.Invoke(uintptr(i), uintptr(unsafe.Pointer(&all[i])))
		if err != nil {
			return nil, err
		}
		if int32(r) != 0 {
			return nil, fmt.Errorf("read allocation %d of %d: out of range", i, n)
		}
	}
	return all, nil
}

// Sequence reads the order of allocations and frees: entry >= 0 allocates that index, entry < 0 frees -entry-1.
func Sequence() ([]int64, error) {
	n, err := procSequence.Invoke(0, 0)
	if err != nil || n == 0 {
		return nil, err
	}
	steps := make([]int64, n)
	_, err = procSequence.Invoke(uintptr(unsafe.Pointer(&steps[0])), n)
	return steps, err
}

// Event is an event of this process.
type Event = contract.Event

// Events reads the process's events in creation order.
func Events() ([]Event, error) {
	n, err := procEventCount.Invoke()
	if err != nil {
		return nil, err
	}
	all := make([]Event, n)
	for i := range all {
		r, err := procEventGet.Invoke(uintptr(i), uintptr(unsafe.Pointer(&all[i])))
		if err != nil {
			return nil, err
		}
		if int32(r) != 0 {
			return nil, fmt.Errorf("read event %d of %d: out of range", i, n)
		}
	}
	return all, nil
}

// Module is a module or library of this process.
type Module struct {
	contract.Module
	number uintptr // the interposer's
}

// Hash fills in the image's hash. The interposer leaves it out if the place of an image identifies it. The hash
// stays zero if the image is gone.
func (m *Module) Hash() {
	procModuleHash.Invoke(m.number, uintptr(unsafe.Pointer(&m.ImageSHA256)))
}

// Build is the build-id of the shared object that holds the image.
func (m *Module) Build() string {
	id, _, _ := bytes.Cut(m.BuildID[:], []byte{0})
	return string(id)
}

// Modules reads the modules and libraries loaded through public calls, in load order, without the unloaded ones.
func Modules() ([]Module, error) {
	n, err := procModuleCount.Invoke()
	if err != nil {
		return nil, err
	}
	var all []Module
	for i := uintptr(0); i < n; i++ {
		var m Module
		r, err := procModuleGet.Invoke(i, uintptr(unsafe.Pointer(&m.Module)))
		if err != nil {
			return nil, err
		}
		if m.number = i; int32(r) == 0 && m.Unloaded == 0 {
			all = append(all, m)
		}
	}
	return all, nil
}

// TriggerFunctions reads the distinct functions launched in trigger scopes.
func TriggerFunctions() ([]uint64, error) {
	n, err := procTriggerFunctions.Invoke(0, 0)
	if err != nil || n == 0 {
		return nil, err
	}
	fns := make([]uint64, n)
	_, err = procTriggerFunctions.Invoke(uintptr(unsafe.Pointer(&fns[0])), n)
	return fns, err
}

// TriggerLaunches is the number of launches made in trigger scopes so far.
func TriggerLaunches() uint64 {
	n, err := procTriggerLaunches.Invoke()
	if err != nil {
		return 0
	}
	return uint64(n)
}

// InTrigger runs f inside a trigger scope, so that its allocations stay out of the sequence.
func InTrigger(f func() error) error {
	if _, err := procTriggerBegin.Invoke(); err != nil {
		return err
	}
	defer procTriggerEnd.Invoke()
	return f()
}

// ForCommunicator runs f as a time in which the engine's communicator is at work: memory that any thread allocates then is the communicator's.
func ForCommunicator(f func() error) error {
	if _, err := procMarkCommunicator.Invoke(1); err != nil {
		return err
	}
	defer procMarkCommunicator.Invoke(0)
	return f()
}

// CapturedGraph is a graph that this process captured itself, as the interposer saw it.
type CapturedGraph struct {
	Label string
	Exec  cuda.GraphExec
}

// CapturedGraphs reads the captured graphs that can be launched, in capture order. An artifact has only these.
func CapturedGraphs() ([]CapturedGraph, error) {
	n, err := procGraphCount.Invoke()
	if err != nil {
		return nil, err
	}
	var graphs []CapturedGraph
	for i := range n {
		var label [256]byte
		var exec uint64
		r, err := procGraphGet.Invoke(i, uintptr(unsafe.Pointer(&label)), uintptr(len(label)), uintptr(unsafe.Pointer(&exec)))
		if err != nil {
			return nil, err
		}
		if int32(r) != 0 {
			return nil, fmt.Errorf("read captured graph %d of %d: out of range", i, n)
		}
		text, _, _ := bytes.Cut(label[:], []byte{0})
		if exec != 0 {
			graphs = append(graphs, CapturedGraph{Label: string(text), Exec: cuda.GraphExec(exec)})
		}
	}
	return graphs, nil
}

// Region reads the region of this process's device memory.
func Region() (contract.Exact, error) {
	var r contract.Exact
	_, err := procExactGet.Invoke(uintptr(unsafe.Pointer(&r)))
	return r, err
}
