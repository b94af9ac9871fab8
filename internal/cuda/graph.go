package cuda

import "unsafe"

// Graph is a CUgraph, GraphExec a CUgraphExec made from it.
type (
	Graph     uintptr
	GraphExec uintptr
)

// CUresult cuGraphDestroy(CUgraph hGraph)
var procGraphDestroy = Driver("cuGraphDestroy")

// Destroy gives the graph back. Executables made from it live on.
func (g Graph) Destroy() error { return procGraphDestroy.Call(uintptr(g)) }

// CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
var procGraphGetNodes = Driver("cuGraphGetNodes")

// NodeCount is the number of the graph's nodes.
func (g Graph) NodeCount() (int, error) {
	var n uint64
	err := procGraphGetNodes.Call(uintptr(g), 0, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
var procGraphInstantiate = Driver("cuGraphInstantiateWithFlags")

// Instantiate makes an executable graph.
func (g Graph) Instantiate(flags uint64) (GraphExec, error) {
	var e GraphExec
	err := procGraphInstantiate.Call(uintptr(unsafe.Pointer(&e)), uintptr(g), uintptr(flags))
	return e, err
}

// CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
var procGraphUpload = Driver("cuGraphUpload")

// Upload puts the graph on the device, so that its first launch costs no more than a later one.
func (e GraphExec) Upload(s Stream) error { return procGraphUpload.Call(uintptr(e), uintptr(s)) }

// CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
var procGraphLaunch = Driver("cuGraphLaunch")

// Launch runs the graph on a stream.
func (e GraphExec) Launch(s Stream) error { return procGraphLaunch.Call(uintptr(e), uintptr(s)) }

// CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
var procGraphExecDestroy = Driver("cuGraphExecDestroy")

// Destroy gives the executable graph back.
func (e GraphExec) Destroy() error { return procGraphExecDestroy.Call(uintptr(e)) }

// KernelNodeParams mirrors CUDA_KERNEL_NODE_PARAMS (v2). One of Func and Kern is set; Params points to an array of
// pointers, one a parameter.
type KernelNodeParams struct {
	Func           Function
	Grid, Block    Dim3
	SharedMemBytes uint32
	Params, Extra  uintptr
	Kern           Kernel
	Ctx            Context
}

// MemsetNodeParams mirrors CUDA_MEMSET_NODE_PARAMS. Width counts elements of ElementSize bytes; Pitch is used where
// Height is more than 1.
type MemsetNodeParams struct {
	Dst                DevicePtr
	Pitch              uint64
	Value, ElementSize uint32
	Width, Height      uint64
}

// EdgeData mirrors CUgraphEdgeData.
type EdgeData struct {
	FromPort, ToPort, Type uint8
	_                      [5]uint8
}

// LaunchAttributeValue mirrors the CUlaunchAttributeValue union.
type LaunchAttributeValue [64]byte
