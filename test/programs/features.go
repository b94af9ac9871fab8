package programs

import (
	"maps"
	"slices"
	"sync"
)

// Features lists everything restorable that a program may have, and that many seeds bring up. A feature that no seed brings up
// would be missing here as well, so the list is held against docs/fidelity.md by a test.
var Features = sync.OnceValue(func() []string {
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		for f := range New(seed).Features {
			seen[f] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
})
