package materialize

import (
	"math/rand/v2"

	"medusa/graphir"
)

// padding is a run of bytes inside a by-value struct that differed between the recordings and led to no allocation:
// most likely bytes that no code of the engine ever wrote. The presumption is tested, not believed: the candidate that
// runs N and V verify has random bytes there, and only where every output is the same nevertheless does the artifact get
// zeros in their place.
type padding struct {
	graph, node  int
	offset, size uint32 // in the parameter buffer
	cause        *WordError
}

type paddings []padding

// add appends p, or extends the last run with it.
func (ps paddings) add(p padding) paddings {
	if n := len(ps); n > 0 {
		last := &ps[n-1]
		if last.graph == p.graph && last.node == p.node && last.offset+last.size == p.offset {
			last.size += p.size
			return ps
		}
	}
	return append(ps, p)
}

// poison fills the presumed padding with bytes that are neither what was recorded nor zero.
func (ps paddings) poison(spec *graphir.Spec, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	ps.each(spec, func(b *byte) { *b = byte(1 + r.UintN(255)) })
}

// settle puts zeros there.
func (ps paddings) settle(spec *graphir.Spec) {
	ps.each(spec, func(b *byte) { *b = 0 })
}

func (ps paddings) each(spec *graphir.Spec, set func(*byte)) {
	for _, p := range ps {
		params := spec.Graphs[p.graph].Nodes[p.node].Kernel.Params
		for i := p.offset; i < p.offset+p.size; i++ {
			set(&params[i])
		}
	}
}
