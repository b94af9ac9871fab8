package compile

import (
	"bytes"
	"slices"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// tensorMaps tells tensor maps in recorded bytes from other bytes.
type tensorMaps struct {
	a, b map[string]*recording.TensorMap
	spec *graphir.Spec
}

// tensorMapAlign is the alignment of a CUtensorMap in bytes.
const tensorMapAlign = 64

// at decides the 128 bytes at a place of both runs. number is 0 if they are no tensor map in either.
func (t *tensorMaps) at(p *prover, a, b []byte) (number uint32, ptr graphir.Pointer, err *WordError) {
	if t == nil || len(a) < graphir.TensorMapBytes {
		return 0, ptr, nil
	}
	ma, mb := t.a[string(a[:graphir.TensorMapBytes])], t.b[string(b[:graphir.TensorMapBytes])]
	switch {
	case ma == nil && mb == nil:
		return 0, ptr, nil
	case ma == nil || mb == nil:
		return 0, ptr, &WordError{Unwritten: !bytes.Equal(a[:graphir.TensorMapBytes], b[:graphir.TensorMapBytes]), Reason: "a tensor map in one run only"}
	case ma.Tiled == 0 || mb.Tiled == 0:
		return 0, ptr, &WordError{A: ma.Addr, B: mb.Addr, Reason: "a tensor map that cuTensorMapEncodeTiled did not make: such maps are not restored"}
	}
	ptr, isPointer, err := p.word(ma.Addr, mb.Addr)
	if err != nil {
		return 0, ptr, err
	}
	if !isPointer {
		return 0, ptr, &WordError{A: ma.Addr, B: mb.Addr, Reason: "the address in a tensor map leads to no live allocation"}
	}
	args, other := mapArguments(ma), mapArguments(mb)
	if !equalMaps(&args, &other) {
		return 0, ptr, &WordError{A: ma.Addr, B: mb.Addr, Reason: "a tensor map with other extents in the other run"}
	}
	for i := range t.spec.TensorMaps {
		if equalMaps(&t.spec.TensorMaps[i], &args) {
			return uint32(i) + 1, ptr, nil
		}
	}
	t.spec.TensorMaps = append(t.spec.TensorMaps, args)
	return uint32(len(t.spec.TensorMaps)), ptr, nil
}

func mapArguments(m *recording.TensorMap) graphir.TensorMap {
	return graphir.TensorMap{DataType: m.Type, Interleave: m.Interleave, Swizzle: m.Swizzle, L2Promotion: m.L2, OOBFill: m.Fill,
		GlobalDim: m.Dim, GlobalStrides: m.Strides, BoxDim: m.Box, ElementStrides: m.Steps}
}

func equalMaps(x, y *graphir.TensorMap) bool {
	return x.DataType == y.DataType && x.Interleave == y.Interleave && x.Swizzle == y.Swizzle && x.L2Promotion == y.L2Promotion &&
		x.OOBFill == y.OOBFill && slices.Equal(x.GlobalDim, y.GlobalDim) && slices.Equal(x.GlobalStrides, y.GlobalStrides) &&
		slices.Equal(x.BoxDim, y.BoxDim) && slices.Equal(x.ElementStrides, y.ElementStrides)
}
