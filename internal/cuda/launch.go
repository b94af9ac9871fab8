package cuda

import (
	"math"
	"runtime"
	"unsafe"
)

// Limits of Args. The reference kernels stay far below both.
const (
	maxParams     = 32
	maxParamWords = 128
)

// Dim3 is the extent of a grid or a block in x, y, z.
type Dim3 [3]uint32

// Args collects the parameters of a kernel launch. It can be reused for further launches, one at a time, because the driver
// copies the parameters during the launch call. It is pinned because it has pointers into itself that C follows.
type Args struct {
	words  [maxParamWords]uint64
	ptrs   [maxParams]unsafe.Pointer
	params int
	used   int // words
	pinner runtime.Pinner
}

// NewArgs makes an empty, pinned Args. It stays pinned for the rest of the process.
func NewArgs() *Args {
	a := new(Args)
	a.pinner.Pin(a)
	return a
}

// Reset empties the list and returns it.
func (a *Args) Reset() *Args {
	a.params, a.used = 0, 0
	return a
}

// next reserves a parameter of the given number of 8-byte words. It truncates a list that is too long, and Launch refuses it.
func (a *Args) next(words int) []uint64 {
	a.params++
	if a.params > maxParams || a.used+words > maxParamWords {
		a.params = maxParams + 1
		return make([]uint64, words)
	}
	w := a.words[a.used : a.used+words]
	a.ptrs[a.params-1] = unsafe.Pointer(&w[0])
	a.used += words
	return w
}

// Ptr appends a device address.
func (a *Args) Ptr(p DevicePtr) *Args { return a.U64(uint64(p)) }

// U64 appends a 64-bit integer.
func (a *Args) U64(v uint64) *Args {
	a.next(1)[0] = v
	return a
}

// I32 appends a 32-bit integer. Parameters are little-endian, so the kernel reads the low half of the word.
func (a *Args) I32(v int) *Args { return a.U64(uint64(uint32(int32(v)))) }

// F32 appends a float.
func (a *Args) F32(v float32) *Args { return a.U64(uint64(math.Float32bits(v))) }

// Struct appends a by-value struct of whole 8-byte words.
func (a *Args) Struct(words ...uint64) *Args {
	copy(a.next(len(words)), words)
	return a
}

// Launch launches the function on a stream with sharedBytes of dynamic shared memory.
func (f Function) Launch(grid, block Dim3, sharedBytes uint32, stream Stream, args *Args) error {
	if args.params > maxParams {
		return &ArgsError{}
	}
	return procLaunchKernel.Call(uintptr(f), uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]),
		uintptr(block[0]), uintptr(block[1]), uintptr(block[2]), uintptr(sharedBytes), uintptr(stream),
		uintptr(unsafe.Pointer(&args.ptrs)), 0)
}

// LaunchConfig mirrors CUlaunchConfig. Attrs points to LaunchAttributes.
type LaunchConfig struct {
	Grid, Block    Dim3
	SharedMemBytes uint32
	_              uint32
	Stream         Stream
	Attrs          uintptr
	NumAttrs       uint32
	_              uint32
}

// LaunchEx launches the function with a configuration. Either params or extra is 0; the driver uses the other.
func (f Function) LaunchEx(config *LaunchConfig, params, extra uintptr) error {
	return procLaunchKernelEx.Call(uintptr(unsafe.Pointer(config)), uintptr(f), params, extra)
}

// ArgsError means that the launch has more parameters than Args holds.
type ArgsError struct{}

func (*ArgsError) Error() string {
	return "launch kernel: parameters exceed the limits of cuda.Args (32 parameters, 1024 bytes)"
}
