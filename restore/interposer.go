package restore

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"medusa/internal/contract"
	"medusa/internal/cuda"
)

// The functions of interpose/preload/medusa.h that this package calls. They live in the preloaded library.
var (
	procAllocCount       = cuda.Process("medusa_alloc_count")
	procAllocGet         = cuda.Process("medusa_alloc_get")
	procSequence         = cuda.Process("medusa_sequence")
	procEventCount       = cuda.Process("medusa_event_count")
	procEventGet         = cuda.Process("medusa_event_get")
	procModuleCount      = cuda.Process("medusa_module_count")
	procModuleGet        = cuda.Process("medusa_module_get")
	procModuleHash       = cuda.Process("medusa_module_hash")
	procTriggerBegin     = cuda.Process("medusa_trigger_begin")
	procTriggerEnd       = cuda.Process("medusa_trigger_end")
	procTriggerFunctions = cuda.Process("medusa_trigger_functions")
	procTriggerLaunches  = cuda.Process("medusa_trigger_launches")
	procGraphCount       = cuda.Process("medusa_graph_count")
	procGraphGet         = cuda.Process("medusa_graph_get")
	procPlay             = cuda.Process("medusa_play")
	procMarkIdentity     = cuda.Process("medusa_mark_identity")
)

// errNoInterposer says that the process was not started by medusa.
var errNoInterposer = errors.New("find medusa_play: the interposer is not loaded (start the engine with medusa restore)")

// interposerPresent reports whether the preloaded library is there and offers everything a restore needs.
func interposerPresent() bool { return procPlay.Present() && procSequence.Present() }

// liveAlloc is an allocation of this process.
type liveAlloc = contract.Alloc

// allocations reads the process's allocation map.
func allocations() ([]liveAlloc, error) {
	n, err := procAllocCount.Invoke()
	if err != nil {
		return nil, err
	}
	all := make([]liveAlloc, n)
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

// sequence reads the order of allocations and frees: entry >= 0 allocates that index, entry < 0 frees -entry-1.
func sequence() ([]int64, error) {
	n, err := procSequence.Invoke(0, 0)
	if err != nil || n == 0 {
		return nil, err
	}
	steps := make([]int64, n)
	_, err = procSequence.Invoke(uintptr(unsafe.Pointer(&steps[0])), n)
	return steps, err
}

// liveEvent is an event of this process.
type liveEvent = contract.Event

// liveEvents reads the process's events in creation order.
func liveEvents() ([]liveEvent, error) {
	n, err := procEventCount.Invoke()
	if err != nil {
		return nil, err
	}
	all := make([]liveEvent, n)
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

// liveModule is a module or library of this process.
type liveModule struct {
	contract.Module
	number uintptr // the interposer's
}

// hash takes the image's hash, which the interposer leaves out if the place of an image says which one it is. It stays
// zero if the image is gone.
func (m *liveModule) hash() {
	procModuleHash.Invoke(m.number, uintptr(unsafe.Pointer(&m.ImageSHA256)))
}

func (m *liveModule) buildID() string {
	id, _, _ := bytes.Cut(m.BuildID[:], []byte{0})
	return string(id)
}

// liveModules reads the modules and libraries loaded through public calls, in load order, without the unloaded ones.
func liveModules() ([]liveModule, error) {
	n, err := procModuleCount.Invoke()
	if err != nil {
		return nil, err
	}
	var all []liveModule
	for i := uintptr(0); i < n; i++ {
		var m liveModule
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

// triggerFunctions reads the distinct functions launched in trigger scopes.
func triggerFunctions() ([]uint64, error) {
	n, err := procTriggerFunctions.Invoke(0, 0)
	if err != nil || n == 0 {
		return nil, err
	}
	fns := make([]uint64, n)
	_, err = procTriggerFunctions.Invoke(uintptr(unsafe.Pointer(&fns[0])), n)
	return fns, err
}

// triggerLaunches is the number of launches made in trigger scopes so far.
func triggerLaunches() uint64 {
	n, err := procTriggerLaunches.Invoke()
	if err != nil {
		return 0
	}
	return uint64(n)
}

// inTrigger runs f inside a trigger scope, so that its allocations stay out of the sequence.
func inTrigger(f func() error) error {
	if _, err := procTriggerBegin.Invoke(); err != nil {
		return err
	}
	defer procTriggerEnd.Invoke()
	return f()
}

// capturedGraph is a graph that this process captured itself, as the interposer saw it.
type capturedGraph struct {
	label string
	exec  cuda.GraphExec
}

// capturedGraphs reads the captured graphs that can be launched, in capture order. An artifact has no others.
func capturedGraphs() ([]capturedGraph, error) {
	n, err := procGraphCount.Invoke()
	if err != nil {
		return nil, err
	}
	var graphs []capturedGraph
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
			graphs = append(graphs, capturedGraph{label: string(text), exec: cuda.GraphExec(exec)})
		}
	}
	return graphs, nil
}

// markIdentity hands one factor to the recorder; a process without one drops it.
func markIdentity(key, value string) {
	if !procMarkIdentity.Present() {
		return
	}
	k, v := append([]byte(key), 0), append([]byte(value), 0)
	procMarkIdentity.Invoke(uintptr(unsafe.Pointer(&k[0])), uintptr(unsafe.Pointer(&v[0])))
}
