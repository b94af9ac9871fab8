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
	Graphs      []Graph  // in capture order
	Contents    []Content
	Tensors     []Tensor
	Triggers    []Trigger
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
}

// Step is one event of the allocation sequence.
type Step struct {
	Free  bool
	Alloc uint32
}

// Pointer is an indirect index pointer (paper §4.1): the Offset-th byte of the Alloc-th allocation.
// Offset may equal the allocation's size: one past the end.
type Pointer struct {
	Alloc  uint32
	Offset uint64
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
	NodeEmpty  NodeType = 5
)

// Node is one graph node; the pointer that Type names is set, the others are nil (an empty node has none).
type Node struct {
	Type   NodeType
	Kernel *KernelNode
	Memset *MemsetNode
	Memcpy *MemcpyNode
}

// KernelNode is a kernel launch. Params holds the parameter buffer as one piece; the eight bytes at each fixup's offset
// are zero and stand for its pointer.
type KernelNode struct {
	Kernel      uint32
	Grid, Block [3]uint32
	SharedBytes uint32
	Params      []byte
	Fixups      []Fixup // by ascending offset
	Attrs       []NodeAttr
}

// Fixup says that the eight bytes at Offset hold an address.
type Fixup struct {
	Offset  uint32
	Pointer Pointer
}

// NodeAttr is a CUlaunchAttributeID and the 64 bytes of its value.
type NodeAttr struct {
	ID    uint32
	Value [64]byte
}

// MemsetNode mirrors CUDA_MEMSET_NODE_PARAMS. Width counts elements of ElemSize bytes.
type MemsetNode struct {
	Dst           Pointer
	Pitch         uint64
	Value         uint32
	ElemSize      uint32
	Width, Height uint64
}

// MemcpyNode mirrors CUDA_MEMCPY3D between two device addresses.
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
// The eight bytes at each fixup's offset are zero and stand for its pointer.
// Bytes in Unstable ranges differed between the recordings and led nowhere: they are stored as zero, and verification
// runs with random bytes there.
type Content struct {
	Alloc    uint32
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

// Trigger is one eager run of the engine's first layer (paper §5.2) at the batch size of the graph it names.
type Trigger struct {
	Batch    int64
	Kernels  []uint32 // kernels whose launch leads to a module not reachable otherwise
	Launches uint32   // kernels launched by this run, filled by verification
}
