// Package testmem bounds the memory of functions that tests call.
//
// In: a function and the size of its input. Out: none. Fails: if the function allocates more than a reader of foreign
// bytes may, 64 MiB and four times its input; that ends the test. All that is allocated counts, freed or not, so the
// result does not depend on when the garbage collector runs.
package testmem

import (
	"runtime/metrics"
	"testing"
)

// Bounded calls do, which reads input bytes. Other goroutines must not allocate much meanwhile.
func Bounded(t testing.TB, input int, do func()) {
	t.Helper()
	before := allocated()
	do()
	if used, limit := allocated()-before, uint64(64<<20+4*input); used > limit {
		t.Fatalf("%d bytes of input took %d bytes of memory (at most %d)", input, used, limit)
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
