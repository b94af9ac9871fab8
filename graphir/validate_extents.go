package graphir

import (
	"fmt"
	"math/bits"
)

const (
	// maxObject bounds the size of an object. No process has more addresses (five-level paging), and the sum of an address and an
	// offset then fits in 64 bits.
	maxObject = 1 << 57
	// maxHostBytes bounds all host buffers of a Spec together. A restored process keeps them as long as its graphs.
	maxHostBytes = 1 << 30
)

// sizes checks the declared sizes of objects before anything is allocated for them.
func (v *validator) sizes() {
	check := func(table string, i int, size uint64) {
		if size > maxObject {
			v.bad(fmt.Sprintf("%s[%d].size", table, i), "%d bytes (at most %d)", size, uint64(maxObject))
		}
	}
	for i := range v.spec.Allocations {
		check("allocations", i, v.spec.Allocations[i].Size)
		// mutant: mappings of one chain that wrap
		if v.chains.First(uint32(i)) {
			check("allocations", i, v.chainSize(uint32(i)))
		}
	}
	for i := range v.spec.Globals {
		check("globals", i, v.spec.Globals[i].Size)
	}
	v.hostBuffers()
}

// chainSize returns the size of a mapping and of those after it in its chain, or more than maxObject.
func (v *validator) chainSize(first uint32) uint64 {
	whole := min(v.spec.Allocations[first].Size, maxObject)
	for _, next := range v.chains.Following(first) {
		if whole += min(v.spec.Allocations[next].Size, maxObject+1); whole > maxObject {
			break
		}
	}
	return whole
}

// hostBuffers checks that the file has all bytes of every host buffer, because the restorer allocates buffers of the declared
// sizes. A graph section alone has no contents and is never restored.
func (v *validator) hostBuffers() {
	held := make([]uint64, len(v.spec.HostBuffers))
	for i := range v.spec.Contents {
		if c := &v.spec.Contents[i]; c.Space == SpaceHost && int64(c.Alloc) < int64(len(held)) {
			held[c.Alloc] += uint64(len(c.Data))
		}
	}
	total := uint64(0) // at most maxHostBytes
	for i, h := range v.spec.HostBuffers {
		path := fmt.Sprintf("host_buffers[%d].size", i)
		// mutant: host buffers are in the file
		if h.Size != held[i] && len(v.spec.Contents) > 0 {
			v.bad(path, "%d bytes, of which contents hold %d", h.Size, held[i])
			continue
		}
		if h.Size > maxHostBytes-total {
			v.bad(path, "host buffers of more than %d bytes together", maxHostBytes)
			return
		}
		total += h.Size
	}
}

// mulAdd returns a*b + c. It fails if the result exceeds 64 bits.
func mulAdd(a, b, c uint64) (sum uint64, ok bool) {
	hi, lo := bits.Mul64(a, b)
	sum, carry := bits.Add64(lo, c, 0)
	// mutant: sums of sizes that wrap
	return sum, hi == 0 && carry == 0
}
