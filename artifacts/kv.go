package artifacts

import (
	"cmp"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/kvprofile"
)

// checkCache checks that the profile's bytes for the KV cache hold the recorded tensors of the cache. An engine sizes its cache
// from the profile before it compares other facts with the artifact.
func checkCache(p *kvprofile.Profile, spec *graphir.Spec) error {
	left := p.KVBytes
	last := extent{}
	for _, e := range cacheExtents(spec) {
		if e.first == last.first { // overlapping tensors count once
			e.from = max(e.from, last.end)
		}
		if e.from >= e.end {
			continue
		}
		// mutant: KV cache large enough for its tensors
		if e.end-e.from > left {
			return fmt.Errorf("check KV profile: KV bytes are %d, too few for the tensors of the cache", p.KVBytes)
		}
		left -= e.end - e.from
		last = e
	}
	return nil
}

// extent is a range of bytes, counted from the start of an allocation or of a run of contiguous mappings.
type extent struct {
	first     uint32
	from, end uint64
}

// cacheExtents returns the extents of the KV cache's tensors, in order.
func cacheExtents(spec *graphir.Spec) []extent {
	chains := spec.Contiguous()
	before := make([]uint64, len(spec.Allocations)) // bytes before this mapping in its contiguous run
	first := make([]uint32, len(spec.Allocations))
	for i := range first {
		first[i] = uint32(i)
	}
	for i, chain := range chains {
		if chain[0] != i {
			continue
		}
		size := uint64(0)
		for _, k := range chain {
			first[k], before[k] = i, size
			size += spec.Allocations[k].Size
		}
	}
	var out []extent
	for i := range spec.Tensors {
		if t := &spec.Tensors[i]; t.Role == graphir.RoleKV {
			from := before[t.At.Index] + t.At.Offset
			out = append(out, extent{first[t.At.Index], from, from + t.Size})
		}
	}
	slices.SortFunc(out, func(a, b extent) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.from, b.from))
	})
	return out
}
