package cuda

import (
	"fmt"
	"slices"
	"unsafe"
)

// NodeCount returns the number of the graph's nodes.
func (g Graph) NodeCount() (int, error) {
	var n uint64
	err := procGraphGetNodes.Call(uintptr(g), 0, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// Captured returns the graph into which the stream captures, or 0 if it captures nothing, and the nodes that the next captured call would depend
// on. After a launch, that is its node.
func (s Stream) Captured() (Graph, []Node, error) {
	var status uint32
	var id, count uint64
	var graph Graph
	var nodes *Node
	var edges *EdgeData
	err := procStreamGetCaptureInfo.Call(uintptr(s), uintptr(unsafe.Pointer(&status)), uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&graph)),
		uintptr(unsafe.Pointer(&nodes)), uintptr(unsafe.Pointer(&edges)), uintptr(unsafe.Pointer(&count)))
	if err != nil {
		return 0, nil, err
	}
	const active = 1
	if status != active {
		return 0, nil, nil
	}
	return graph, slices.Clone(unsafe.Slice(nodes, count)), nil
}

// CaptureEmptyNode adds a node that does nothing to the stream's capture. Later calls of the stream come after it.
func (s Stream) CaptureEmptyNode() error {
	graph, before, err := s.Captured()
	if err != nil {
		return err
	}
	node, err := graph.AddEmptyNode(before)
	if err != nil {
		return err
	}
	const set = 1 // in place of the dependencies so far
	return procStreamUpdateCaptureDependencies.Call(uintptr(s), uintptr(unsafe.Pointer(&node)), 0, 1, set)
}

// AddDependencies adds edges: the i-th leads from from[i] to to[i] with data edges[i].
func (g Graph) AddDependencies(from, to []Node, edges []EdgeData) error {
	if len(from) != len(to) || len(from) != len(edges) {
		return fmt.Errorf("cuGraphAddDependencies_v2: %w", InvalidValue)
	}
	return procGraphAddDependencies.Call(uintptr(g), uintptr(unsafe.Pointer(unsafe.SliceData(from))),
		uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(unsafe.Pointer(unsafe.SliceData(edges))), uintptr(len(from)))
}

// KernelNodeParams mirrors CUDA_KERNEL_NODE_PARAMS (v2). Either Func or Kern is set. Params points to an array of pointers, one
// per parameter.
type KernelNodeParams struct {
	Func           Function
	Grid, Block    Dim3
	SharedMemBytes uint32
	Params, Extra  uintptr
	Kern           Kernel
	Ctx            Context
}

// MemsetNodeParams mirrors CUDA_MEMSET_NODE_PARAMS. Width counts elements of ElementSize bytes. Pitch is used if Height is more
// than 1.
type MemsetNodeParams struct {
	Dst                DevicePtr
	Pitch              uint64
	Value, ElementSize uint32
	Width, Height      uint64
}

// HostNodeParams mirrors CUDA_HOST_NODE_PARAMS: a C function and its argument.
type HostNodeParams struct{ Fn, UserData uintptr }

// MemOp mirrors CUstreamBatchMemOpParams: a wait or a write.
type MemOp struct {
	Operation uint32
	Address   DevicePtr
	Value     uint64
	Flags     uint32
	_         [2]uint64
}

// The operations of a MemOp.
const (
	MemOpWait32  = 1
	MemOpWrite32 = 2
	MemOpWait64  = 4
	MemOpWrite64 = 5
)

// WaitEqual is the flag of a wait until the value is the one that is given.
const WaitEqual = 1

// BatchMemOpNodeParams mirrors CUDA_BATCH_MEM_OP_NODE_PARAMS. Ops points to Count of MemOp.
type BatchMemOpNodeParams struct {
	Ctx   Context
	Count uint32
	Ops   uintptr
	Flags uint32
}

// BatchMemOp makes several memory operations, one after the other, after the stream's work so far.
func (s Stream) BatchMemOp(ops []MemOp) error {
	return procStreamBatchMemOp.Call(uintptr(s), uintptr(len(ops)), uintptr(unsafe.Pointer(unsafe.SliceData(ops))), 0)
}

// EdgeData mirrors CUgraphEdgeData.
type EdgeData struct {
	FromPort, ToPort, Type uint8
	_                      [5]uint8
}

// LaunchAttributeValue mirrors the CUlaunchAttributeValue union.
type LaunchAttributeValue [64]byte

// LaunchAttributeID is a CUlaunchAttributeID.
type LaunchAttributeID uint32

// LaunchAttribute mirrors CUlaunchAttribute.
type LaunchAttribute struct {
	ID    LaunchAttributeID
	_     uint32
	Value LaunchAttributeValue
}
