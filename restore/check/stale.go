package check

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"medusa/restore/digest"
)

// findStale replays the graph once more for each piece of saved memory that serving has changed, with the contents after serving in
// it. If the graph then computes something else, the engine keeps data there that it renews between replays.
// A library's workspace changes, too, but no graph depends on the remains of earlier work in it.
func (c *Checker) findStale(graph int, out *digest.Graph) error {
	changed := slices.SortedFunc(maps.Keys(c.served), func(x, y span) int {
		return cmp.Or(cmp.Compare(x.alloc, y.alloc), cmp.Compare(x.offset, y.offset))
	})
	for _, s := range changed {
		if !c.reach[graph].has(s.alloc) || bytes.Equal(c.served[s], c.saved[s]) {
			continue
		}
		if err := c.fill(0); err != nil {
			return err
		}
		if err := write(c.Memory.Base[s.alloc]+s.offset, s.size, c.served[s]); err != nil {
			return err
		}
		c.doubt(func(x *span) bool { return *x == s })
		if err := c.replay(graph); err != nil {
			return err
		}
		results, err := c.hashOf(graph, digest.Results...)
		if err != nil {
			return err
		}
		// mutant: memory that the engine rewrites
		if differs(out.Ranges, results) {
			out.Stale = append(out.Stale, digest.Range{Alloc: s.alloc, Offset: s.offset, Size: s.size, Class: s.class, Stride: s.stride})
		}
	}
	return nil
}

// differs reports whether some results differ from those of two equal replays before.
func differs(before, results []digest.Range) bool {
	for _, r := range results {
		i := slices.IndexFunc(before, func(b digest.Range) bool { return b.Alloc == r.Alloc && b.Offset == r.Offset && b.Class == r.Class })
		for c := range r.Chunks() {
			if before[i].Stable(c) && !bytes.Equal(before[i].Hash(0, c), r.Hash(0, c)) {
				return true
			}
		}
	}
	return false
}
