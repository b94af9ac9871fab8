package materialize

import (
	"fmt"

	"medusa/restore/digest"
)

// RewrittenError is capture-phase memory that the engine itself writes between replays, attention metadata say. A restored
// engine has skipped the code that made it and does not know its address: its graphs would read stale data.
type RewrittenError struct {
	Graph  string
	Alloc  uint32
	Offset uint64
}

func (e *RewrittenError) Error() string {
	return fmt.Sprintf("verify graph %q: the engine rewrites alloc#%d+%d, memory of the capture phase, between replays (name it as a tensor, and take its address from the session)",
		e.Graph, e.Alloc, e.Offset)
}

// rewritten returns the first such memory that check-native found.
func rewritten(native *digest.Digest) error {
	for _, g := range native.Graphs {
		for _, r := range g.Stale {
			return &RewrittenError{g.Label, r.Alloc, r.Offset}
		}
	}
	return nil
}
