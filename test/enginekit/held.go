package enginekit

import (
	"fmt"
	"hash/fnv"
	"unsafe"

	"medusa/internal/contract"
	"medusa/internal/cuda"
)

// Held is the interposer's account of this process's memory: live allocations, their bytes, their places, and whether that is
// in the region of an artifact. In a region the driver sees pages, which small allocations share. An allocation lies in the
// first gap, so an allocation that was left behind moves it. Empty without an interposer.
func Held() (string, error) {
	count, get, region := cuda.Process("medusa_alloc_count"), cuda.Process("medusa_alloc_get"), cuda.Process("medusa_exact_get")
	if !count.Present() {
		return "", nil
	}
	n, err := count.Invoke()
	if err != nil {
		return "", err
	}
	var live, bytes uint64
	places := fnv.New64()
	for i := range n {
		var a contract.Alloc
		if _, err := get.Invoke(i, uintptr(unsafe.Pointer(&a))); err != nil {
			return "", err
		}
		if a.Live != 0 {
			live, bytes = live+1, bytes+a.Size
			fmt.Fprintln(places, a.Addr, a.Size)
		}
	}
	var r contract.Exact
	if _, err := region.Invoke(uintptr(unsafe.Pointer(&r))); err != nil {
		return "", err
	}
	return fmt.Sprintf("blocks=%d bytes=%d places=%x region=%d", live, bytes, places.Sum(nil), r.State), nil
}
