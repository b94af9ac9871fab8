package materialize

import (
	"errors"

	"medusa/internal/spill"
	"medusa/materialize/compile"
)

// provePadding verifies with poisoned padding: all at once with two patterns, and if that fails, with less and less of it until
// the bytes that matter are found. Their word is then an error, as it would have been without the presumption. So that one
// that matters is told from others, pointers that are not poisoned lead to their recorded targets. verify writes the candidate and
// restores it in a process of its own.
func provePadding(ps compile.Paddings, verify func() ([]*verification, error)) ([]*verification, error) {
	if len(ps) == 0 {
		return verify()
	}
	with := func(part compile.Paddings, pattern uint64) ([]*verification, error) {
		// mutant: which old address a kernel follows
		if err := errors.Join(ps.Point(&spill.File{}), part.Poison(&spill.File{}, pattern)); err != nil {
			return nil, err
		}
		return verify()
	}
	var v []*verification
	for pattern := range uint64(2) {
		var err error
		// mutant: padding that matters
		if v, err = with(ps, pattern); err == nil {
			continue
		}
		if _, plain := with(nil, pattern); plain != nil {
			return nil, ps.Without(plain)
		}
		culprit := ps
		for len(culprit) > 1 {
			half := culprit[:len(culprit)/2]
			if _, err := with(half, pattern); err == nil {
				half = culprit[len(culprit)/2:]
			}
			culprit = half
		}
		return nil, culprit[0].Matters(err)
	}
	return v, nil
}
