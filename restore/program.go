package restore

import (
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"medusa/internal/cuda"
)

// call mirrors struct medusa_call.
type call struct {
	Fn    uint64
	NArgs uint32
	Deref uint32
	Arg   [8]uint64
}

// driverCall names a driver function that a program may contain.
type driverCall uint8

const (
	graphCreate driverCall = iota
	addKernelNode
	addMemcpyNode
	addMemsetNode
	addEmptyNode
	addChildGraphNode
	addEventRecordNode
	addEventWaitNode
	setKernelAttribute
	addDependencies
	setKernelParams
	setMemcpyParams
	setMemsetParams
	instantiate
	upload
)

// driverCalls are the exported symbols, each with the ABI that program.go and build.go lay arguments out for:
//
//	CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
//	CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *deps, size_t n, const CUDA_KERNEL_NODE_PARAMS *)
//	CUresult cuGraphAddMemcpyNode(CUgraphNode *, CUgraph, const CUgraphNode *deps, size_t n, const CUDA_MEMCPY3D *, CUcontext)
//	CUresult cuGraphAddMemsetNode(CUgraphNode *, CUgraph, const CUgraphNode *deps, size_t n, const CUDA_MEMSET_NODE_PARAMS *, CUcontext)
//	CUresult cuGraphAddEmptyNode(CUgraphNode *, CUgraph, const CUgraphNode *deps, size_t n)
//	CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *deps, size_t n, CUgraph)
//	CUresult cuGraphAddEventRecordNode(CUgraphNode *, CUgraph, const CUgraphNode *deps, size_t n, CUevent)
//	CUresult cuGraphAddEventWaitNode(CUgraphNode *, CUgraph, const CUgraphNode *deps, size_t n, CUevent)
//	CUresult cuGraphKernelNodeSetAttribute(CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue *)
//	CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *, size_t n)
//	CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *)
//	CUresult cuGraphMemcpyNodeSetParams(CUgraphNode, const CUDA_MEMCPY3D *)
//	CUresult cuGraphMemsetNodeSetParams(CUgraphNode, const CUDA_MEMSET_NODE_PARAMS *)
//	CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long flags)
//	CUresult cuGraphUpload(CUgraphExec, CUstream)
var driverCalls = [...]*cuda.Proc{
	graphCreate:        cuda.Driver("cuGraphCreate"),
	addKernelNode:      cuda.Driver("cuGraphAddKernelNode_v2"),
	addMemcpyNode:      cuda.Driver("cuGraphAddMemcpyNode"),
	addMemsetNode:      cuda.Driver("cuGraphAddMemsetNode"),
	addEmptyNode:       cuda.Driver("cuGraphAddEmptyNode"),
	addChildGraphNode:  cuda.Driver("cuGraphAddChildGraphNode"),
	addEventRecordNode: cuda.Driver("cuGraphAddEventRecordNode"),
	addEventWaitNode:   cuda.Driver("cuGraphAddEventWaitNode"),
	setKernelAttribute: cuda.Driver("cuGraphKernelNodeSetAttribute"),
	addDependencies:    cuda.Driver("cuGraphAddDependencies_v2"),
	setKernelParams:    cuda.Driver("cuGraphKernelNodeSetParams_v2"),
	setMemcpyParams:    cuda.Driver("cuGraphMemcpyNodeSetParams"),
	setMemsetParams:    cuda.Driver("cuGraphMemsetNodeSetParams"),
	instantiate:        cuda.Driver("cuGraphInstantiateWithFlags"),
	upload:             cuda.Driver("cuGraphUpload"),
}

// noNode marks calls that concern the graph as a whole.
const noNode = -1

// step says what a call of a program is for, so that a failing index can be named.
type step struct {
	call driverCall
	node int32
}

// program is a flat list of driver calls. What the calls point to lies in an arena; handles that one call stores and a
// later one passes lie there too (slots).
type program struct {
	calls []call
	steps []step
}

// arg is one argument; a slot's value is read when the call is made.
type arg struct {
	value uint64
	slot  bool
}

func val(v uint64) arg                   { return arg{value: v} }
func ptr[T any](p *T) arg                { return arg{value: uint64(uintptr(unsafe.Pointer(p)))} }
func slot(p *uint64) arg                 { return arg{value: uint64(uintptr(unsafe.Pointer(p))), slot: true} }
func (p *program) reset()                { p.calls, p.steps = p.calls[:0], p.steps[:0] }
func (p *program) describe(i int) string { return p.steps[i].String() }

func (s step) String() string {
	if s.node == noNode {
		return driverCalls[s.call].Name()
	}
	return fmt.Sprintf("node %d: %s", s.node, driverCalls[s.call].Name())
}

// add appends a call. The function's address is filled in by play, so a program can be laid out with no driver.
func (p *program) add(c driverCall, node int, args ...arg) {
	p.calls = append(p.calls, call{NArgs: uint32(len(args))})
	next := &p.calls[len(p.calls)-1]
	for i, a := range args {
		next.Arg[i] = a.value
		if a.slot {
			next.Deref |= 1 << i
		}
	}
	p.steps = append(p.steps, step{c, int32(node)})
}

// arena hands out memory that C may read at any time: outside the Go heap, never moved, freed all at once.
type arena struct {
	chunks [][]byte
	next   int // chunk to use after this one
	free   []byte
}

const (
	arenaChunk = 4 << 20
	arenaAlign = 16
)

// bytes returns size bytes at an address divisible by 16. They are zero unless the arena was reset.
func (a *arena) bytes(size int) ([]byte, error) {
	if size < 0 || size > math.MaxInt-arenaAlign {
		return nil, fmt.Errorf("map %d bytes for graph parameters: no address space has as many", size)
	}
	rounded := (size + arenaAlign - 1) &^ (arenaAlign - 1)
	for rounded > len(a.free) {
		if a.next == len(a.chunks) {
			chunk, err := syscall.Mmap(-1, 0, max(rounded, arenaChunk), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				return nil, fmt.Errorf("map %d bytes for graph parameters: %w", rounded, err)
			}
			a.chunks = append(a.chunks, chunk)
		}
		a.free = a.chunks[a.next]
		a.next++
	}
	b := a.free[:size:size]
	a.free = a.free[rounded:]
	return b, nil
}

// reset takes everything back, for use again.
func (a *arena) reset() { a.next, a.free = 0, nil }

// release unmaps everything.
func (a *arena) release() {
	for _, c := range a.chunks {
		// Unmapping a whole mapping of our own cannot fail.
		_ = syscall.Munmap(c)
	}
	*a = arena{}
}

// place returns n values of T in the arena, zero unless the arena was reset. T must hold no Go pointers.
func place[T any](a *arena, n int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	var zero T
	b, err := a.bytes(n * int(unsafe.Sizeof(zero)))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}
