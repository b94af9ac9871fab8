package graphir

// Spec is the graph IR: all facts about an engine's captured graphs that do not depend on the process. It is plain data: the
// compiler makes it, the encoder stores it and the restorer reads it. This package uses no device.
//
// Every reference is an index into one of its tables. Validate checks them all.
type Spec struct {
	Allocations []Allocation // the i-th allocation of the process, in call order
	Sequence    []Step       // allocations and frees in the order in which they happened
	Modules     []Module
	Kernels     []Kernel // the kernel-name table
	Graphs      []Graph  // in capture order; if Rows is set, without nodes and edges, which NewCursor and EachGraph provide
	Rows        *Rows    // nodes and edges of a large set of graphs; otherwise nil
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
	// BlockMap is the digest of the positions of the framework allocator's blocks when the capture phase began. It is empty if no
	// pointer depends on them.
	BlockMap []byte
	Vacant   []Vacancy // by allocation and offset; only with a BlockMap
	Images   []Image
}

// AllocKind is the driver call that made an allocation (enum alloc_kind of interpose/trace.spec).
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
	// OwnerEngine allocations belong to the prefix of the recorded flow. A restored engine repeats this prefix: the i-th
	// allocation offline is the i-th allocation online.
	OwnerEngine Owner = 1 + iota
	// OwnerGraph allocations were made in the capture phase, which a restored engine skips. The restorer makes those that a graph
	// refers to.
	OwnerGraph
)

// Allocation is one entry of the allocation sequence. Size is in bytes.
type Allocation struct {
	Kind  AllocKind
	Owner Owner
	Size  uint64
	Live  bool // not freed when the engine was ready
	// Thread is the role of the thread that made it. It is 0 for all allocations if their total order repeats.
	Thread uint32
	// Suballocated means that a framework's allocator hands out parts of it. Another process may place these parts
	// differently.
	Suballocated bool
	// ContiguousTo is 1 + the index of the mapping directly before this one in the same reservation, or 0. The two are contiguous, so
	// memory may span both. They must be contiguous in every process.
	ContiguousTo uint32
	// Address is the recorded address, or 0 if it was outside of the Spec's Region.
	Address uint64
}

// Step is one event of the allocation sequence.
type Step struct {
	Free  bool
	Alloc uint32
}

// Vacancy is memory of an engine's suballocated allocation that no work of a restored start has to leave as a native start does. If it is
// not Taken, no block owned it when the engine was ready, and its contents are arbitrary. If it is Taken, it was free when the capture
// phase began, and a block that this phase made owned it at ready. A restored start has no such block, and no graph refers to it.
type Vacancy struct {
	Alloc        uint32
	Offset, Size uint64
	Taken        bool
}

// Space is the table that a pointer's index refers to.
type Space uint8

const (
	SpaceAlloc  Space = iota // Allocations
	SpaceGlobal              // Globals
	SpaceHost                // HostBuffers
	SpaceTensor              // Tensors in suballocated allocations, found by name because the engine may place them anywhere
)

// Pointer is an indirect index pointer (paper §4.1): byte Offset of allocation Alloc. In another space, Alloc is an index of that
// space's table. Offset may equal the size: one past the end.
type Pointer struct {
	Index  uint32
	Space  Space
	Offset uint64
}

// Global is a __device__ or __constant__ variable whose address the process asked for (cuModuleGetGlobal, cuLibraryGetGlobal).
// The restorer finds it by module and name. Size is in bytes.
type Global struct {
	Module uint32
	Name   string
	Size   uint64
}

// HostBuffer is pageable host memory that a memcpy node reads. Its bytes are a Content. The restorer provides the memory.
type HostBuffer struct{ Size uint64 }

// Event is an event that the engine created in the prefix, by creation order. Step counts the allocations and frees before its
// creation. It shows if an engine creates events in another order.
type Event struct {
	Flags uint32
	Step  uint32
}

// TensorMap holds the arguments of cuTensorMapEncodeTiled except the address, in the driver's units. GlobalStrides has one entry
// less than the others.
type TensorMap struct {
	DataType, Interleave, Swizzle, L2Promotion, OOBFill uint32
	GlobalDim, GlobalStrides                            []uint64
	BoxDim, ElementStrides                              []uint32
}

// ModuleKind says how the recorder saw a module being loaded.
type ModuleKind uint8

const (
	ModuleLoaded  ModuleKind = 1 + iota // cuModuleLoad*
	ModuleLibrary                       // cuLibraryLoad*
	ModuleHidden                        // loaded on a path that no hook sees; launching one of its kernels makes it reachable
)

// Module identifies a module without its handle: by the hash of its image if the recorder saw its load, and otherwise by the
// sorted names of all its functions.
type Module struct {
	Kind        ModuleKind
	ImageSHA256 [32]byte
	ImageSize   uint64
	DSO         string // base name of the shared object that holds the image; empty if none does
	BuildID     string
	DSOOffset   uint64
	Functions   []string // sorted; all functions of the module
	// Reload says that a copy loaded from the image alone behaves like the module: no load options changed the code, and the
	// process could not have written any module variable.
	Reload bool
}

// Kernel is one entry of the kernel-name table.
type Kernel struct {
	Name   string // mangled
	Module uint32
	Params []Param    // in order; from cuFuncGetParamInfo
	Attrs  []FuncAttr // cuFuncSetAttribute values in force at capture
}

// Param is the position of one parameter in a kernel's parameter buffer, in bytes.
type Param struct{ Offset, Size uint32 }

// FuncAttr is a CUfunction_attribute and its value.
type FuncAttr struct {
	ID    uint32
	Value int64
}

// Graph is one captured graph. Its nodes are in the order in which the driver listed them.
type Graph struct {
	Label            string
	Batch            int64
	InstantiateFlags uint64
	Nodes            []Node
	Edges            []Edge
}

// Edge makes node To run after node From of the same graph. It has the CUgraphEdgeData.
type Edge struct {
	From, To               uint32
	FromPort, ToPort, Type uint8
}

// Content has the bytes of a permanent buffer when the engine was ready (paper §4.3). The bytes at each relocation's offset are zero;
// the relocation's pointer replaces them. Space is that of Alloc. The bytes in Unstable ranges differed between the recordings and
// were not pointers; they are stored as zero, and verification fills them with random bytes. Contents and images with equal bytes
// share them, as do workspaces that a library cleared, so Data must never be changed in place.
type Content struct {
	Alloc       uint32
	Space       Space
	Offset      uint64
	Data        []byte
	Relocations []Relocation
	Unstable    []Range
}

// Range is a range of bytes inside a Content's data.
type Range struct{ Offset, Size uint64 }

// Role says who writes a named tensor.
type Role uint8

const (
	RoleWeight Role = 1 + iota
	RoleKV
	RoleInput
	RoleOutput
	RoleScratch // its contents count within a replay only
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
	Address // of device memory: in each process another one
)

// Float says whether the type is a floating-point type.
func (t DType) Float() bool { return t == F32 || t == F16 || t == BF16 }

// CheckedKV bounds the bytes of the KV cache that verification fills and compares for each replay: a cache of a real GPU's size would
// take hours. Beyond it, each KV tensor is looked at from its beginning on, for a part of its size that is the same for all.
const CheckedKV = 64 << 20

// Tensor is memory that the engine named. Lo, Hi and Distinct bound the values with which verification fills an integer input. Graphs are
// those that leave a result in an output, in order; if there are none, any graph may.
type Tensor struct {
	Name     string
	Role     Role
	DType    DType
	At       Pointer
	Size     uint64 // bytes
	Shape    []int64
	Lo, Hi   int64
	Distinct bool
	Graphs   []uint32
}

// KVBytes returns the size of the KV cache.
func KVBytes(tensors []Tensor) uint64 {
	var n uint64
	for i := range tensors {
		if tensors[i].Role == RoleKV {
			n += tensors[i].Size
		}
	}
	return n
}

// Note is opaque metadata of the engine, which gets it back unchanged in a restored start. Each name occurs once.
type Note struct {
	Name  string
	Value []byte
}

// Trigger is one eager run of the engine's first layer (paper §5.2), at the batch size of a graph.
type Trigger struct {
	Batch    int64
	Kernels  []uint32 // launching these makes modules reachable that are not reachable otherwise
	Launches uint32   // number of kernels that this run launches, measured by verification
}
