package compile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

func (x *relocated) kernel(w *graphir.KernelNode, n *trace.Kernel, label string, at padPlace, differ func(string, any, any) error) error {
	k, f := &x.spec.Kernels[w.Kernel], x.run.Functions[n.Function]
	if f.Name != k.Name || x.modules[f.Module] != x.specModule(k.Module) {
		return differ("its kernel", f.Name+" of "+x.modules[f.Module], k.Name+" of "+x.specModule(k.Module))
	}
	if !slices.EqualFunc(f.Params, k.Params, func(a trace.FunctionParam, b graphir.Param) bool { return a.Offset == b.Offset && a.Size == b.Size }) {
		return differ("the parameter layout of "+k.Name, f.Params, k.Params)
	}
	if !slices.EqualFunc(f.Attrs, k.Attrs, func(a trace.FunctionAttr, b graphir.FuncAttr) bool { return a.ID == b.ID && a.Value == b.Value }) {
		return differ("the function attributes of "+k.Name, f.Attrs, k.Attrs)
	}
	if !slices.Equal(n.Grid, w.Grid[:]) || !slices.Equal(n.Block, w.Block[:]) || n.Shared != w.SharedBytes {
		return differ("the launch of "+k.Name, fmt.Sprint(n.Grid, n.Block, n.Shared), fmt.Sprint(w.Grid, w.Block, w.SharedBytes))
	}
	if len(n.Attrs) != len(w.Attrs) {
		return differ("the number of attributes", len(n.Attrs), len(w.Attrs))
	}
	for i, a := range w.Attrs {
		want := a.Value
		if a.Base != nil {
			binary.LittleEndian.PutUint64(want[:], x.address(*a.Base))
		}
		var got [len(want)]byte
		if copy(got[:], n.Attrs[i].Value); n.Attrs[i].ID != a.ID || got != want {
			return differ(fmt.Sprintf("attribute %d", a.ID), fmt.Sprintf("%d: %x", n.Attrs[i].ID, got), fmt.Sprintf("%x", want))
		}
	}
	return x.params(k, w, n, label, at, differ)
}

// params compares the parameters' bytes with the artifact's, its pointers resolved. Bytes between parameters are not compared.
func (x *relocated) params(k *graphir.Kernel, w *graphir.KernelNode, n *trace.Kernel, label string, at padPlace, differ func(string, any, any) error) error {
	if len(n.Params) != len(w.Params) {
		return differ("the size of the parameters of "+k.Name, len(n.Params), len(w.Params))
	}
	want := bytes.Clone(w.Params)
	for _, f := range w.Relocations {
		if f.TensorMap == 0 {
			binary.LittleEndian.PutUint64(want[f.Offset:], x.address(f.Pointer))
			continue
		}
		got := n.Params[f.Offset : f.Offset+graphir.TensorMapBytes]
		m := x.run.TensorMaps[string(got)]
		if m == nil {
			return differ(fmt.Sprintf("byte %d of the parameters of %s", f.Offset, k.Name), "no tensor map", "a tensor map")
		}
		if args := mapArguments(m); !equalMaps(&args, &x.spec.TensorMaps[f.TensorMap-1]) || m.Addr != x.address(f.Pointer) {
			return differ(fmt.Sprintf("the tensor map at byte %d of the parameters of %s", f.Offset, k.Name),
				fmt.Sprintf("%+v over %#x", args, m.Addr), fmt.Sprintf("%+v over %#x", x.spec.TensorMaps[f.TensorMap-1], x.address(f.Pointer)))
		}
		copy(want[f.Offset:], got)
	}
	for _, p := range x.pads[at] {
		copy(want[p.Offset:p.Offset+p.Size], n.Params[p.Offset:])
	}
	for i, p := range k.Params {
		got, want := n.Params[p.Offset:p.Offset+p.Size], want[p.Offset:p.Offset+p.Size]
		x.hostWord(w, got, want, p.Offset, at, func() *StructureError {
			var e *StructureError
			errors.As(differ(fmt.Sprintf("parameter %d of %s", i, k.Name), fmt.Sprintf("%x", got), fmt.Sprintf("%x", want)), &e)
			return e
		})
		switch {
		// mutant: nodes of a third process
		case bytes.Equal(got, want), x.settled && !slices.ContainsFunc(want, func(v byte) bool { return v != 0 }):
		case x.mayHoldPadding(want, got):
			x.presume(w, got, want, p.Offset, at, func(from, to uint32) *StructureError {
				var e *StructureError
				errors.As(differ(fmt.Sprintf("byte %d of parameter %d of %s", from, i, k.Name),
					fmt.Sprintf("%x", got[from:to]), fmt.Sprintf("%x", want[from:to])), &e)
				return e
			})
		default:
			return differ(fmt.Sprintf("parameter %d of %s", i, k.Name), fmt.Sprintf("%x", got), fmt.Sprintf("%x", want))
		}
	}
	return nil
}

// hostWord notes a parameter that is an address of this process's own memory, and something else in the artifact: two recordings may
// have had the same address by chance. It makes them equal in want.
func (x *relocated) hostWord(w *graphir.KernelNode, got, want []byte, offset uint32, at padPlace, cause func() *StructureError) {
	if len(want) != 8 {
		return
	}
	is, should := binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(want)
	_, pointer := slices.BinarySearchFunc(w.Relocations, offset, func(f graphir.Relocation, o uint32) int { return cmp.Compare(f.Offset, o) })
	if is == should || pointer || !x.run.timeline.inHost(is) {
		return
	}
	// mutant: an address of the process's own memory in a third process
	if !x.settled || should != notFollowed {
		x.found = append(x.found, Padding{Spec: x.spec, embedded: at.embedded, graph: at.graph, node: at.node, Offset: offset, Size: 8,
			Native: cause(), value: bytes.Clone(want), host: true})
	}
	copy(want, got)
}

// presume notes bytes of a struct that differ in a third process, pointers as wholes: no code may ever have written them. Zeros of a
// settled artifact are such bytes that verification has proven already.
func (x *relocated) presume(w *graphir.KernelNode, got, want []byte, offset uint32, at padPlace, cause func(from, to uint32) *StructureError) {
	add := func(from, to uint32, pointer *graphir.Pointer) {
		x.found = append(x.found, Padding{Spec: x.spec, embedded: at.embedded, graph: at.graph, node: at.node, Offset: offset + from, Size: to - from,
			Native: cause(from, to), pointer: pointer, value: bytes.Clone(w.Params[offset+from : offset+to])})
	}
	end := uint32(len(want))
	differs := func(o uint32) bool { return got[o] != want[o] && !(x.settled && want[o] == 0) }
	relocation := func(o uint32) *graphir.Relocation {
		i, found := slices.BinarySearchFunc(w.Relocations, offset+o, func(f graphir.Relocation, o uint32) int { return cmp.Compare(f.Offset, o) })
		if !found {
			return nil
		}
		return &w.Relocations[i]
	}
	for from := uint32(0); from < end; {
		to := from + 1
		if f := relocation(from); f != nil {
			if to = from + f.Size(); !bytes.Equal(got[from:to], want[from:to]) {
				pointer := f.Pointer
				add(from, to, &pointer)
			}
		} else if differs(from) {
			for to < end && (offset+to)%8 != 0 && differs(to) {
				to++
			}
			add(from, to, nil)
		}
		from = to
	}
}

// mayHoldPadding reports whether a parameter can be a struct with bytes that no code wrote, which two recordings may have alike by
// chance. Four bytes are a number. So are eight, if they are small in both processes or may be an address.
func (x *relocated) mayHoldPadding(want, got []byte) bool {
	if len(want) != 8 {
		return len(want) != 4
	}
	a, b := binary.LittleEndian.Uint64(want), binary.LittleEndian.Uint64(got)
	near := func(v uint64) bool { return x.lo < x.hi && v+nearDevice >= x.lo && v <= x.hi+nearDevice }
	return max(a, b) >= 1<<32 && !near(a) && !near(b)
}
