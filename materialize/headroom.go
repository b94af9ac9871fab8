package materialize

import (
	"fmt"
	"slices"

	"medusa/materialize/recording"
)

// A restored start keeps memory that a native one does not: libraries allocate their workspaces during the triggering
// layers, and the graphs own copies of those that were recorded. The KV cache is made smaller by as much, so that a
// restored engine has the headroom that the profile left a native one, up to the noise in free memory (headroomTolerance).

// headroomAttempts bounds how often the cache is made smaller and everything recorded again. The first estimate is right
// unless a library allocates differently in a triggering layer than in the warm-up.
const headroomAttempts = 3

// headroomGranularity is the unit of a device's physical memory.
// mutant: granularity of headroom
const headroomGranularity = 2 << 20

// libraryBytes estimates that memory from the run profile: memory that the capture phase, or the profile forward before it, allocated, kept,
// and did not divide into blocks of the framework's own.
func libraryBytes(r *recording.Recording) uint64 {
	warmup := r.PhaseOrder("profile", "warmup", "capture")
	var blocks []uint64
	for _, b := range r.Blocks {
		blocks = append(blocks, b.Addr)
	}
	slices.Sort(blocks)
	var sum uint64
	for i := range r.Allocs {
		a := &r.Allocs[i]
		first, _ := slices.BinarySearch(blocks, a.Addr)
		// mutant: memory of a framework is no library's
		suballocated := first < len(blocks) && blocks[first]-a.Addr < a.Size // at any moment
		// mutant: memory of libraries at ready
		if a.Born > warmup && a.Died > r.ReadyOrder && !suballocated {
			sum += a.Size
		}
	}
	return roundUp(sum)
}

// headroomTolerance is the difference in free memory that is no reason to record again. Equal starts of one engine differ by
// about as much: contexts, code that loads when it is first used, local memory, executable graphs, and other processes take
// memory that the engine did not ask for.
func headroomTolerance(total uint64) uint64 { return max(32<<20, total/512) }

func roundUp(bytes uint64) uint64 {
	// mutant: headroom in whole pages
	return (bytes + headroomGranularity - 1) / headroomGranularity * headroomGranularity
}

// HeadroomError says that a restored start needs more memory each time its KV cache is made smaller.
type HeadroomError struct{ Native, Restored, Shrunk uint64 }

func (e *HeadroomError) Error() string {
	return fmt.Sprintf("verify headroom: %d bytes free natively, %d restored with a KV cache smaller by %d", e.Native, e.Restored, e.Shrunk)
}

// missingHeadroom returns by how much more the KV cache has to shrink for a restored start to leave as much as a native one
// with the profile's own size would. Both runs had a cache that was already smaller by shrunk bytes.
func (v *verification) missingHeadroom(shrunk uint64) uint64 {
	// mutant: headroom as large as natively
	if v.restoredFree+shrunk >= v.nativeFree {
		return 0
	}
	// mutant: headroom that is missing
	return roundUp(v.nativeFree - v.restoredFree - shrunk)
}
