package materialize

import (
	"errors"

	"medusa/internal/spill"
	"medusa/materialize/compile"
)

// provePadding verifies with poisoned padding, and with the bytes that the artifact gets there. If either fails, it changes less and
// less of the padding until it finds the bytes that matter. Their word is then an error, as it would have been without the
// presumption. Pointers that are not poisoned lead to their recorded targets, so that a pointer that matters is told from the others.
// verify writes the candidate and restores it in a process of its own.
func provePadding(ps compile.Paddings, verify func() ([]*verification, error)) ([]*verification, error) {
	if len(ps) == 0 {
		return verify()
	}
	poisoned := func(part compile.Paddings) ([]*verification, error) {
		// mutant: which old address a kernel follows
		if err := errors.Join(ps.Point(&spill.File{}), part.Poison(&spill.File{})); err != nil {
			return nil, err
		}
		return verify()
	}
	// Code may ask whether unwritten bytes are zero, which they hardly ever are.
	settled := func(part compile.Paddings) ([]*verification, error) {
		if err := errors.Join(ps.Poison(&spill.File{}), part.Settle(&spill.File{})); err != nil {
			return nil, err
		}
		return verify()
	}
	// mutant: padding that matters
	if _, err := tried(ps, poisoned); err != nil {
		return nil, err
	}
	// mutant: padding whose zeros matter
	return tried(ps, settled)
}

// tried changes all padding, and looks for the bytes that matter if that fails.
func tried(ps compile.Paddings, with func(part compile.Paddings) ([]*verification, error)) ([]*verification, error) {
	v, err := with(ps)
	if err == nil {
		return v, nil
	}
	if _, plain := with(nil); plain != nil {
		return nil, ps.Without(plain)
	}
	culprit := ps
	for len(culprit) > 1 {
		half := culprit[:len(culprit)/2]
		if _, err := with(half); err == nil {
			half = culprit[len(culprit)/2:]
		}
		culprit = half
	}
	return nil, culprit[0].Matters(err)
}
