package compile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"medusa/graphir"
)

// Padding is a run of bytes inside a by-value struct that no code of the engine ever wrote, most likely. The bytes differed between
// the recordings and led to no allocation, or they led to one byte of memory that was free in both (blocks.go), or they were alike
// in both but not in a third process (structure.go). The presumption is tested: check-restored restores a candidate with random
// bytes there, and once more with zeros. If every output is the same both times, the artifact gets the zeros. Random bytes are no
// address that a device has: a kernel that follows them fails.
type Padding struct {
	Spec         *graphir.Spec // of any rank
	embedded     bool          // the graph is one of the spec's Children
	graph, node  int
	Offset, Size uint32 // in the parameter buffer
	Cause        *WordError
	Native       *StructureError  // the difference in a third process; Cause is nil then
	pointer      *graphir.Pointer // its target in both recordings, or nil
	value        []byte           // the bytes of both recordings, if they agreed and led nowhere; else nil
	host         bool             // an address of the process's own memory
}

// notFollowed stands for an address of the process's own memory. It is no null pointer, which a kernel may ask for, and no address of
// any memory. Libraries pass such addresses to kernels that take the value from elsewhere: the device cannot read that memory.
const notFollowed = 0x6d65_6475_7361_0001

// Paddings are all bytes that compiling presumes to be padding.
type Paddings []Padding

// add appends p, or extends the last run with it up to the end of a word: each word that matters has an error of its own.
func (ps Paddings) add(p Padding) Paddings {
	if n := len(ps); n > 0 && p.Offset%8 != 0 {
		last := &ps[n-1]
		if last.embedded == p.embedded && last.graph == p.graph && last.node == p.node && last.Offset+last.Size == p.Offset {
			last.Size += p.Size
			return ps
		}
	}
	return append(ps, p)
}

// Unproven is the error of the first padding, for callers that have no run to test it.
func (ps Paddings) Unproven() error {
	if len(ps) == 0 {
		return nil
	}
	return ps[0].Cause
}

// Matters is the error of bytes that are no padding: err is the failure that other bytes there caused.
func (p *Padding) Matters(err error) error {
	reason := fmt.Sprintf("it is no padding, since other bytes there change what the graph does (%v)", err)
	if p.Native != nil {
		e := *p.Native
		e.Reason = reason
		return &e
	}
	word := *p.Cause
	word.Reason += "; " + reason
	return &word
}

// Without is the error of a run that failed although no padding was changed. If a third process has other bytes than the
// artifact somewhere, they may be the reason. They cannot be tried one by one, since their meaning is not known.
func (ps Paddings) Without(err error) error {
	i := slices.IndexFunc(ps, func(p Padding) bool { return p.Native != nil })
	if i < 0 {
		return err // padding is not the reason
	}
	e := *ps[i].Native
	e.Reason = err.Error()
	return errors.Join(&e, err)
}

// Poison fills the presumed padding with bytes that are neither the recorded ones nor zero.
func (ps Paddings) Poison(scratch graphir.Storage) error {
	r := rand.New(rand.NewPCG(0, 0))
	return ps.each(scratch, func(p *Padding, k *graphir.KernelNode) { p.fill(k, func() byte { return byte(1 + r.UintN(255)) }) })
}

// Settle puts zeros there, and notFollowed for addresses of the process's own memory.
func (ps Paddings) Settle(scratch graphir.Storage) error { return ps.each(scratch, (*Padding).settle) }

func (p *Padding) settle(k *graphir.KernelNode) {
	p.fill(k, func() byte { return 0 })
	if p.host {
		binary.LittleEndian.PutUint64(k.Params[p.Offset:], notFollowed)
	}
}

// Point puts the recorded pointers and values there, and zeros if the recordings had neither in common.
func (ps Paddings) Point(scratch graphir.Storage) error {
	return ps.each(scratch, func(p *Padding, k *graphir.KernelNode) {
		p.settle(k)
		copy(k.Params[p.Offset:], p.value)
		if p.pointer != nil {
			at, _ := p.relocation(k)
			k.Relocations = slices.Insert(k.Relocations, at, graphir.Relocation{Offset: p.Offset, Pointer: *p.pointer})
		}
	})
}

func (p *Padding) fill(k *graphir.KernelNode, value func() byte) {
	if at, found := p.relocation(k); found {
		k.Relocations = slices.Delete(k.Relocations, at, at+1)
	}
	for i := p.Offset; i < p.Offset+p.Size; i++ {
		k.Params[i] = value()
	}
}

func (p *Padding) relocation(k *graphir.KernelNode) (at int, found bool) {
	return slices.BinarySearchFunc(k.Relocations, p.Offset, func(f graphir.Relocation, offset uint32) int { return cmp.Compare(f.Offset, offset) })
}

func (ps Paddings) each(scratch graphir.Storage, set func(*Padding, *graphir.KernelNode)) error {
	type graph struct {
		spec  *graphir.Spec
		index int
	}
	var specs []*graphir.Spec
	launched := map[graph]Paddings{}
	for _, p := range ps {
		if p.embedded {
			set(&p, p.Spec.Children[p.graph].Nodes[p.node].Kernel())
			continue
		}
		if !slices.Contains(specs, p.Spec) {
			specs = append(specs, p.Spec)
		}
		at := graph{p.Spec, p.graph}
		launched[at] = append(launched[at], p)
	}
	for _, spec := range specs {
		err := spec.Change(scratch, func(i int, g *graphir.Graph) {
			for _, p := range launched[graph{spec, i}] {
				set(&p, g.Nodes[p.node].Kernel())
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
