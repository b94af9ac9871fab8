package materialize

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"medusa/graphir"
	"medusa/internal/spill"
)

// padding is a run of bytes inside a by-value struct that differed between the recordings and led to no allocation, or
// to one byte of memory that was nobody's in either (blocks.go), or that were alike in both but not in a third process
// (structure.go): most likely bytes that no code of the engine ever wrote.
// The presumption is tested, not believed: run V restores a candidate with random bytes there, twice with different
// ones, and only where every output is the same nevertheless does the artifact get zeros in their place. Random bytes are
// no address that a device has: a kernel that follows them fails.
type padding struct {
	spec         *graphir.Spec // of whatever rank
	embedded     bool          // the graph is one of the spec's Children
	graph, node  int
	offset, size uint32 // in the parameter buffer
	cause        *WordError
	native       *StructureError  // what a third process has there; cause is nil then
	pointer      *graphir.Pointer // what it led to in both recordings, or nil
	value        []byte           // what both recordings had there, if they agreed and it led nowhere; else nil
}

type paddings []padding

// add appends p, or extends the last run with it, as far as a word goes: where it matters, its own error is to say so.
func (ps paddings) add(p padding) paddings {
	if n := len(ps); n > 0 && p.offset%8 != 0 {
		last := &ps[n-1]
		if last.embedded == p.embedded && last.graph == p.graph && last.node == p.node && last.offset+last.size == p.offset {
			last.size += p.size
			return ps
		}
	}
	return append(ps, p)
}

// prove verifies with poisoned padding: all at once with two patterns, and where that fails, with less and less of it until
// the bytes that matter are found. Their word is then an error, as it would have been without the presumption. So that one
// that matters is told from others, pointers that are not poisoned lead where they led. verify writes the candidate and
// restores it in a process of its own.
func (ps paddings) prove(verify func() ([]*verification, error)) ([]*verification, error) {
	if len(ps) == 0 {
		return verify()
	}
	with := func(part paddings, pattern uint64) ([]*verification, error) {
		// mutant: which old address a kernel follows
		if err := errors.Join(ps.point(), part.poison(pattern)); err != nil {
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
			return nil, ps.without(plain)
		}
		culprit := ps
		for len(culprit) > 1 {
			half := culprit[:len(culprit)/2]
			if _, err := with(half, pattern); err == nil {
				half = culprit[len(culprit)/2:]
			}
			culprit = half
		}
		return nil, culprit[0].matters(err)
	}
	return v, nil
}

// matters is the error of bytes that are no padding.
func (p *padding) matters(err error) error {
	reason := fmt.Sprintf("it is no padding, since other bytes there change what the graph does (%v)", err)
	if p.native != nil {
		e := *p.native
		e.Reason = reason
		return &e
	}
	word := *p.cause
	word.Reason += "; " + reason
	return &word
}

// without is the error of a run that failed although nothing was poisoned. If a third process has other bytes than the artifact
// somewhere, they may be why, but which of them cannot be tried: what they mean is not known.
func (ps paddings) without(err error) error {
	i := slices.IndexFunc(ps, func(p padding) bool { return p.native != nil })
	if i < 0 {
		return err // padding has nothing to do with it
	}
	e := *ps[i].native
	e.Reason = err.Error()
	return errors.Join(&e, err)
}

// poison fills the presumed padding with bytes that are neither what was recorded nor zero.
func (ps paddings) poison(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	return ps.each(func(p *padding, k *graphir.KernelNode) { p.fill(k, func() byte { return byte(1 + r.UintN(255)) }) })
}

// settle puts zeros there.
func (ps paddings) settle() error {
	return ps.each(func(p *padding, k *graphir.KernelNode) { p.fill(k, func() byte { return 0 }) })
}

// point puts pointers and values there, and zeros where the recordings had neither in common.
func (ps paddings) point() error {
	return ps.each(func(p *padding, k *graphir.KernelNode) {
		p.fill(k, func() byte { return 0 })
		copy(k.Params[p.offset:], p.value)
		if p.pointer != nil {
			at, _ := p.fixup(k)
			k.Fixups = slices.Insert(k.Fixups, at, graphir.Fixup{Offset: p.offset, Pointer: *p.pointer})
		}
	})
}

func (p *padding) fill(k *graphir.KernelNode, value func() byte) {
	if at, found := p.fixup(k); found {
		k.Fixups = slices.Delete(k.Fixups, at, at+1)
	}
	for i := p.offset; i < p.offset+p.size; i++ {
		k.Params[i] = value()
	}
}

func (p *padding) fixup(k *graphir.KernelNode) (at int, found bool) {
	return slices.BinarySearchFunc(k.Fixups, p.offset, func(f graphir.Fixup, offset uint32) int { return cmp.Compare(f.Offset, offset) })
}

func (ps paddings) each(set func(*padding, *graphir.KernelNode)) error {
	type graph struct {
		spec  *graphir.Spec
		index int
	}
	var specs []*graphir.Spec
	launched := map[graph]paddings{}
	for _, p := range ps {
		if p.embedded {
			set(&p, p.spec.Children[p.graph].Nodes[p.node].Kernel)
			continue
		}
		if !slices.Contains(specs, p.spec) {
			specs = append(specs, p.spec)
		}
		at := graph{p.spec, p.graph}
		launched[at] = append(launched[at], p)
	}
	for _, spec := range specs {
		err := spec.Change(&spill.File{}, func(i int, g *graphir.Graph) {
			for _, p := range launched[graph{spec, i}] {
				set(&p, g.Nodes[p.node].Kernel)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
