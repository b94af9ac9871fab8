// Package programs makes random programs against the CUDA driver API and reports the outcome of each: refused offline, or
// restored without a difference, or not.
//
// In: a seed. Out: a Plan, which the engine of this folder executes (engine/), and the outcome of materializing, restoring
// and verifying batches of them. A program allocates in every way that is restorable, fills tables, variables and tensor
// maps, captures or builds graphs of every node type, and replays them on changing inputs. Fails: if a program differs, is
// refused though it should not be, or is not refused though it should be; the seed says which.
package programs

import "fmt"

// Plan is one program. All of it follows from the seed.
type Plan struct {
	Seed     uint64
	Buffers  []Buffer
	Modules  []Module
	Events   int // created in the prefix
	Tables   []Table
	Maps     []Map
	Graphs   []Graph
	FreeLate []int  // buffers that are freed after the graphs are made
	Refused  string // has to be refused, with this in the error; empty: has not
	Features map[string]bool
}

// Words is the length of every buffer that kernels compute on, in 32-bit words.
const Words = 64

// BufferKind is the origin of a buffer.
type BufferKind uint8

// Kinds of buffers.
const (
	Device BufferKind = iota
	Pitch
	Async
	Pool
	Pinned
	Registered
	Mapped   // cuMemMap
	Spanning // across the boundary of two mappings
	Block    // a piece of the buffer Parent
	Managed  // only in programs that must be refused
)

// Buffer is memory of a program. Sizes and offsets are in bytes.
type Buffer struct {
	Kind      BufferKind
	Parent    int
	Offset    uint64
	Size      uint64
	Capture   bool // allocated in the capture phase
	Thread    bool // by another thread
	Freed     int  // freed after so many more buffers, before any graph is made; 0: never
	Temporary bool // a block that is taken back after capture: graphs write it before they read it
	Input     bool // the engine writes it before every replay
}

// Module is one copy of the kernels with an image of its own.
type Module struct {
	Library  bool
	Late     bool // loaded in the capture phase
	Twice    bool // a second copy of the image is loaded
	ByKernel bool // nodes name a CUkernel
	Written  int  // variables are written: 0 never, 1 in the prefix, 2 in the capture phase
	Where    int  // the buffer that the variable `where` points to, or -1
	Attrs    []FuncAttr
}

// FuncAttr is a function attribute set for a kernel.
type FuncAttr struct {
	Kernel    string
	ID, Value int
	OnKernel  bool // with cuKernelSetAttribute
	Capture   bool // in the capture phase
}

// Table is a buffer that holds pointers to others, written by the host.
type Table struct {
	Buffer  int
	Targets []Pointer
}

// Pointer is a place in a buffer, or with Buffer -1-m in the variable `state` of module m.
type Pointer struct {
	Buffer int
	Offset uint64
}

// Map is a tensor map over a buffer. Stored: in the buffer Buffer; else passed by value. Moved: made over another buffer
// and moved with cuTensorMapReplaceAddress.
type Map struct {
	Over   int
	Buffer int
	Stored bool
	Moved  bool
	Rank   int
}

// OpKind is the work of a node.
type OpKind uint8

// Kinds of operations.
const (
	Kernel OpKind = iota
	Copy
	Fill
	MemOps
	Empty
	Record
	Wait
	Child
	HostCall // only in programs that must be refused
)

// Op is one node.
type Op struct {
	Kind   OpKind
	Kernel string
	Module int
	Args   []Arg
	Extra  bool // parameters as one buffer
	Grid   uint32
	Block  uint32
	Shared uint32
	Attrs  []Attr
	Serial bool // programmatic stream serialization, if captured

	// Copies and fills.
	Src, Dst             Pointer
	Host                 []byte // of pageable memory, read instead of Src
	HostTable            []Pointer
	ToPageable           bool
	Scribbled            bool   // Host changes after the graph is made
	Width, Height, Depth uint64 // bytes (fills: elements), rows, slices
	SrcPitch, DstPitch   uint64
	Elem, Value          uint32

	Mem   []MemOp
	Event int
	Child *Graph

	reads, writes []int // resources, for the edges
}

// MemOp writes a value to an address, or waits there for a value that an operation of the same list has written.
type MemOp struct {
	At         Pointer
	Value      uint64
	Wide, Wait bool
}

// Arg is a kernel's parameter: a pointer, a number of 1, 4 or 8 bytes, a struct of such, or a tensor map.
type Arg struct {
	Pointer *Pointer
	Number  uint64
	Size    int // 1, 4 or 8, of a number
	Struct  []Arg
	Map     int  // 1 + index
	Padding int  // bytes that differ in every process
	Host    bool // an address of the process's own memory, which no kernel follows
}

// Attr is a launch attribute.
type Attr struct {
	ID    int
	Words [4]uint32
	Base  *Pointer // of an access-policy window
}

// Edge orders two operations of a graph.
type Edge struct {
	From, To   int
	Port, Type uint8
}

// Mode is how a graph is made.
type Mode uint8

// Modes.
const (
	Built Mode = iota
	Captured
	Changed // captured, then changed
)

// Graph is one graph of a program.
type Graph struct {
	Mode    Mode
	Flags   uint64
	Ops     []Op
	Edges   []Edge
	Streams []int // by operation, if captured
	Split   int   // operations before it are captured, if Changed
	Swapped bool  // the same as the graph before but for parameters
}

// Label names a graph of a program, so that an error about it leads to the seed.
func Label(seed uint64, graph int) string { return fmt.Sprintf("p%d.g%d", seed, graph) }

// Writes are the buffers that the operation writes, Reads those that it reads.
func (o *Op) Writes() []int { return o.writes }

// Reads lists the resources that an operation reads, as Writes does.
func (o *Op) Reads() []int { return o.reads }
