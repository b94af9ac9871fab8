package live

import (
	"unsafe"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
)

var (
	procMarkIdentity = cuda.Process("medusa_mark_identity")
	procMarkElastic  = cuda.Process("medusa_mark_elastic")
	procTensorGet    = cuda.Process("medusa_tensor_get")
	procBlockMap     = cuda.Process("medusa_block_map")
)

// MarkIdentity hands one factor to the recorder; a process without one drops it.
func MarkIdentity(key, value string) {
	if !procMarkIdentity.Present() {
		return
	}
	k, v := append([]byte(key), 0), append([]byte(value), 0)
	procMarkIdentity.Invoke(uintptr(unsafe.Pointer(&k[0])), uintptr(unsafe.Pointer(&v[0])))
}

// MarkElastic tells the recorder of an elastic KV cache; a process without one drops it.
func MarkElastic(least, block uint64) {
	if procMarkElastic.Present() {
		procMarkElastic.Invoke(uintptr(least), uintptr(block))
	}
}

// Place is the address and the size of a named tensor in this process.
type Place struct{ Addr, Size uint64 }

// MarkedTensor returns the place of a tensor that the engine has marked in this process.
func MarkedTensor(name string) (p Place, ok bool) {
	if !procTensorGet.Present() {
		return p, false
	}
	text := append([]byte(name), 0)
	var place [2]uint64
	r, err := procTensorGet.Invoke(uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&place[0])), uintptr(unsafe.Pointer(&place[1])))
	return Place{place[0], place[1]}, err == nil && int32(r) == 0
}

// Blocks reads the framework's blocks as they were when the capture phase began.
func Blocks() ([]graphir.Block, error) {
	n, err := procBlockMap.Invoke(0, 0)
	if err != nil || n == 0 {
		return nil, err
	}
	marked := make([]contract.Block, n)
	if _, err := procBlockMap.Invoke(uintptr(unsafe.Pointer(&marked[0])), n); err != nil {
		return nil, err
	}
	blocks := make([]graphir.Block, n)
	for i, b := range marked {
		blocks[i] = graphir.Block{Alloc: b.Alloc, Live: b.Live != 0, Offset: b.Offset, Size: b.Size}
	}
	return blocks, nil
}
