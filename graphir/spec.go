package graphir

// Spec is the graph IR: everything about an engine's captured graphs that does not depend on the process that runs
// them. It is plain data: compiling makes it, encoding stores it, restoring reads it; nothing here touches a device.
//
// Every reference is an index into one of its tables; Validate checks them all.
type Spec struct {
	Allocations []Allocation // the i-th allocation of the process, in call order
	Sequence    []Step       // allocations and frees, interleaved as they happened
	Modules     []Module
	Kernels     []Kernel // the kernel-name table
	Graphs      []Graph  // in capture order; where Rows is set, without nodes and edges: NewCursor and EachGraph have them
	Rows        *Rows    // nodes and edges of large sets of graphs; else nil
	Children    []Graph  // graphs that child graph nodes embed; a child's own children come before it
	Globals     []Global
	HostBuffers []HostBuffer
	Events      []Event
	TensorMaps  []TensorMap
	Contents    []Content
	Tensors     []Tensor
	Notes       []Note
	Triggers    []Trigger
	Region      Region
	// BlockMap is the digest of where a framework's allocator had its blocks when the capture phase began, where a pointer
	// depends on that; else empty.
	BlockMap []byte
	Images   []Image
}

// AllocKind is the driver call that an allocation came from (enum alloc_kind of interpose/trace.spec).
type AllocKind uint8

const (
	AllocDevice AllocKind = 1 + iota
	AllocManaged
	AllocPinned
	AllocRegistered
	AllocAsync
	AllocPool
	AllocVMM
	AllocPitch
	AllocIPC
)

// Owner says who makes an allocation in a restored process.
type Owner uint8

const (
	// OwnerEngine allocations belong to the prefix of the recorded flow, which a restored engine repeats: the i-th
	// allocation offline is the i-th allocation online.
	OwnerEngine Owner = 1 + iota
	// OwnerGraph allocations were made in the capture phase, which a restored engine skips: the restorer makes those
	// that a graph refers to.
	OwnerGraph
)

// Allocation is one entry of the allocation sequence. Size is in bytes.
type Allocation struct {
	Kind  AllocKind
	Owner Owner
	Size  uint64
	Live  bool // not freed when the engine was ready
	// Thread is the role of the thread that made it; 0 for all where the total order of allocations repeats.
	Thread uint32
	// Divided says that a framework's allocator hands out parts of it, and may place them otherwise in another process.
	Divided bool
	// Behind is 1 + the index of the mapping that this one lies directly behind, in one reservation: memory may span both,
	// and does in every process. 0: none.
	Behind uint32
	// Address is where the allocation lay when it was recorded; 0 where that was not in the Spec's Region.
	Address uint64
}

// Step is one event of the allocation sequence.
type Step struct {
	Free  bool
	Alloc uint32
}

// Space says which table a pointer's index refers to.
type Space uint8

const (
	SpaceAlloc  Space = iota // Allocations
	SpaceGlobal              // Globals
	SpaceHost                // HostBuffers
	SpaceTensor              // Tensors in divided allocations: by name, wherever the engine has placed them
)

// Pointer is an indirect index pointer (paper §4.1): the Offset-th byte of the Alloc-th allocation, or, in another space,
// of that entry of its table. Offset may equal the size: one past the end.
type Pointer struct {
	Alloc  uint32
	Space  Space
	Offset uint64
}

// Global is a __device__ or __constant__ variable whose address the process asked for (cuModuleGetGlobal,
// cuLibraryGetGlobal). It is found online by its module and name. Size is in bytes.
type Global struct {
	Module uint32
	Name   string
	Size   uint64
}

// HostBuffer is pageable host memory that a memcpy node reads. Its bytes are a Content; the restorer provides the memory.
type HostBuffer struct{ Size uint64 }

// Event is an event that the engine created in the prefix, by creation order. Step counts the allocations and frees
// before its creation, so that an engine that creates events in another order is noticed.
type Event struct {
	Flags uint32
	Step  uint32
}

// TensorMap holds the arguments of cuTensorMapEncodeTiled but the address, in the driver's units. GlobalStrides has one
// entry less than the others.
type TensorMap struct {
	DataType, Interleave, Swizzle, L2Promotion, OOBFill uint32
	GlobalDim, GlobalStrides                            []uint64
	BoxDim, ElementStrides                              []uint32
}

// ModuleKind says how the recorder saw a module come into the process.
type ModuleKind uint8

const (
	ModuleLoaded  ModuleKind = 1 + iota // cuModuleLoad*
	ModuleLibrary                       // cuLibraryLoad*
	ModuleHidden                        // by a path that no hook sees; only launching one of its kernels leads to it
)

// Module identifies a module without its handle: by the hash of its image where its load was seen, else by the sorted
// names of all its functions.
type Module struct {
	Kind        ModuleKind
	ImageSHA256 [32]byte
	ImageSize   uint64
	DSO         string // base name of the shared object that holds the image, empty where none does
	BuildID     string
	DSOOffset   uint64
	Functions   []string // sorted; all functions of the module
	// Reload says that a copy loaded from the image alone does what the module does: no load options that change code, no
	// module variables that a process could have written.
	Reload bool
}

// Kernel is one entry of the kernel-name table.
type Kernel struct {
	Name   string // mangled
	Module uint32
	Params []Param    // in order; from cuFuncGetParamInfo
	Attrs  []FuncAttr // cuFuncSetAttribute values in force at capture
}

// Param is the place of one parameter in a kernel's parameter buffer, in bytes.
type Param struct{ Offset, Size uint32 }

// FuncAttr is a CUfunction_attribute and its value.
type FuncAttr struct {
	ID    uint32
	Value int64
}

// Graph is one captured graph. Nodes keep the order in which the driver listed them.
type Graph struct {
	Label            string
	Batch            int64
	InstantiateFlags uint64
	Nodes            []Node
	Edges            []Edge
}

// NodeType is a CUgraphNodeType.
type NodeType uint8

const (
	NodeKernel NodeType = 0
	NodeMemcpy NodeType = 1
	NodeMemset NodeType = 2
	NodeChild  NodeType = 4
	NodeEmpty  NodeType = 5
	// NodeEventWait and NodeEventRecord are about an event outside of the graph.
	NodeEventWait   NodeType = 6
	NodeEventRecord NodeType = 7
)

// Node is one graph node; the pointer that Type names is set, the others are nil (an empty node has none). Target is the
// index of a child graph node's graph in Children, and of an event node's event in Events.
type Node struct {
	Type   NodeType
	Kernel *KernelNode
	Memset *MemsetNode
	Memcpy *MemcpyNode
	Target uint32
}

// KernelNode is a kernel launch. Params holds the parameter buffer as one piece; the bytes at each fixup's offset
// are zero and stand for its pointer.
type KernelNode struct {
	Kernel      uint32
	Grid, Block [3]uint32
	SharedBytes uint32
	Params      []byte
	Fixups      []Fixup // by ascending offset
	Attrs       []NodeAttr
}

// Fixup says that the eight bytes at Offset hold an address; or, where TensorMap is not 0, that the 128 bytes at Offset
// are the tensor map with that number (counted from 1) over the address.
type Fixup struct {
	Offset    uint32
	TensorMap uint32
	Pointer   Pointer
}

// TensorMapBytes is the size of a CUtensorMap.
const TensorMapBytes = 128

// Size is how many bytes the fixup covers.
func (f *Fixup) Size() uint32 {
	if f.TensorMap != 0 {
		return TensorMapBytes
	}
	return 8
}

// NodeAttr is a CUlaunchAttributeID and the 64 bytes of its value. Where Base is set, it stands for the value's first
// eight bytes, which are zero: the base of an access-policy window.
type NodeAttr struct {
	ID    uint32
	Value [64]byte
	Base  *Pointer
}

// MemsetNode mirrors CUDA_MEMSET_NODE_PARAMS. Width counts elements of ElemSize bytes.
type MemsetNode struct {
	Dst           Pointer
	Pitch         uint64
	Value         uint32
	ElemSize      uint32
	Width, Height uint64
}

// MemcpyNode mirrors CUDA_MEMCPY3D between two addresses that the device reaches. The source may be a HostBuffer.
type MemcpyNode struct {
	Src, Dst             MemcpyEnd
	Width, Height, Depth uint64
}

// MemcpyEnd is one side of a copy.
type MemcpyEnd struct {
	Pointer       Pointer
	X, Y, Z       uint64
	Pitch, Height uint64
}

// Edge orders To after From (node indices of one graph) with its CUgraphEdgeData.
type Edge struct {
	From, To               uint32
	FromPort, ToPort, Type uint8
}

// Content is what a permanent buffer held when the engine was ready (paper §4.3).
// The bytes at each fixup's offset are zero and stand for its pointer. Space is that of Alloc.
// Bytes in Unstable ranges differed between the recordings and led nowhere: they are stored as zero, and verification
// runs with random bytes there. Contents and images of equal bytes share them, as do workspaces that a library cleared:
// Data is never changed in place.
type Content struct {
	Alloc    uint32
	Space    Space
	Offset   uint64
	Data     []byte
	Fixups   []Fixup
	Unstable []Range
}

// Range is a span of bytes inside a Content's data.
type Range struct{ Offset, Size uint64 }

// Role says who writes a named tensor.
type Role uint8

const (
	RoleWeight Role = 1 + iota
	RoleKV
	RoleInput
	RoleOutput
)

// DType is the element type of a tensor (enum medusa_dtype of medusa.h).
type DType uint8

const (
	F32 DType = 1 + iota
	F16
	BF16
	I32
	I64
	U8
)

// Float says whether the type is one of floating-point numbers.
func (t DType) Float() bool { return t == F32 || t == F16 || t == BF16 }

// Tensor is memory that the engine named. Lo, Hi and Distinct bound the values that verification fills an integer
// input with.
type Tensor struct {
	Name     string
	Role     Role
	DType    DType
	At       Pointer
	Size     uint64 // bytes
	Shape    []int64
	Lo, Hi   int64
	Distinct bool
}

// Note is what the engine wants to know again in a restored start, in words of its own. Each name comes once.
type Note struct {
	Name  string
	Value []byte
}

// Trigger is one eager run of the engine's first layer (paper §5.2) at the batch size of the graph it names.
type Trigger struct {
	Batch    int64
	Kernels  []uint32 // kernels whose launch leads to a module not reachable otherwise
	Launches uint32   // kernels launched by this run, filled by verification
}
