// Package kernels holds the engine's device code: PTX made from the CUDA C++ beside it (`make ptx`), the mangled names of
// its kernels, and the launch geometry they expect. README.md lists parameters and layouts.
//
// It does not use the driver: the engine loads Modules, looks kernels up by Name and launches them.
package kernels

import (
	_ "embed"
	"fmt"
	"unsafe"
)

//go:embed llama.ptx
var llama []byte

//go:embed attention.ptx
var attention []byte

// A Module is one PTX image.
type Module struct {
	Name string
	PTX  []byte // ends with a zero byte, as the driver's text images must
}

// Modules returns the images to load, in an order that never changes.
func Modules() []Module {
	return []Module{{"llama", terminated(llama)}, {"attention", terminated(attention)}}
}

func terminated(text []byte) []byte { return append(append([]byte(nil), text...), 0) }

// Storage is the element type of weights, activations and the KV cache; arithmetic is always float.
type Storage uint8

const (
	F32 Storage = iota
	F16
	BF16
)

// Kernel identifies a kernel irrespective of its storage type.
type Kernel uint8

const (
	Embed Kernel = iota
	GatherRows
	RMSNorm
	AddRMSNorm
	Rope
	SiLUMul
	Argmax
	StoreKV
	Attention
	kernelCount
)

// entry names a kernel's place: its module and its mangled name up to and from the mangled storage type.
var entries = [kernelCount]struct{ module, before, after string }{
	Embed:      {"llama", "_Z5embedI", "EvPKiPKT_PS2_i"},
	GatherRows: {"llama", "_Z11gather_rowsI", "EvPKT_PKiPS0_i"},
	RMSNorm:    {"llama", "_Z8rms_normI", "EvPKT_S2_PS0_if"},
	AddRMSNorm: {"llama", "_Z12add_rms_normI", "EvPT_PKS0_S3_S1_if"},
	Rope:       {"llama", "_Z4ropeI", "EvPT_PKiPKfiii"},
	SiLUMul:    {"llama", "_Z8silu_mulI", "EvPKT_PS0_i"},
	Argmax:     {"llama", "_Z6argmaxI", "EvPKT_Pii"},
	StoreKV:    {"attention", "_Z8store_kvI", "EvPKT_PS0_S3_PKiS5_S5_iiiii"},
	Attention:  {"attention", "_Z9attentionI", "Ev13AttentionArgs"},
}

// Name returns the module and the mangled name of k for a storage type.
func Name(k Kernel, s Storage) (module, function string) {
	e := entries[k]
	mangled := map[Storage]string{F32: "f", F16: "DF16_", BF16: "DF16b"}[s]
	return e.module, e.before + mangled + e.after
}

// AttentionArgs is the struct that kernel Attention takes by value; the layout is that of attention.cu.
type AttentionArgs struct {
	QKV, KCache, VCache, Out            uint64 // device addresses
	BlockTables, Sequences, Positions   uint64
	QHeads, KVHeads, HeadDim, BlockSize int32
	MaxBlocks                           int32
	Scale                               float32 // 1/sqrt(HeadDim)
}

// AttentionArgsSize is the parameter's size in bytes.
const AttentionArgsSize = int(unsafe.Sizeof(AttentionArgs{}))

// maxHeadDim is the widest head that Attention takes.
const maxHeadDim = 1024

// RowThreads returns the block size for a row-wise kernel over a row of n elements: enough threads for four elements
// each, a multiple of the warp, at most 256.
func RowThreads(n int) uint32 { return uint32(min(256, max(32, (n/4+31)/32*32))) }

// ArgmaxThreads is the block size of Argmax.
const ArgmaxThreads = 128

// AttentionThreads is the block size of Attention: one warp a head and row.
const AttentionThreads = 32

// CheckHead reports whether the kernels can compute heads of this size. Every other size of a model may be anything.
func CheckHead(dim int) error {
	switch {
	case dim%2 != 0:
		return fmt.Errorf("%d is odd (rotary embedding turns pairs of dimensions)", dim)
	case dim < 2 || dim > maxHeadDim:
		return fmt.Errorf("%d is not between 2 and %d", dim, maxHeadDim)
	}
	return nil
}
