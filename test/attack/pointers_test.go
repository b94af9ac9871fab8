package main

import (
	"testing"

	"medusa/graphir"
	"medusa/test/attack/mutate"
)

// The check sees each way in which a graph uses the words of a recording, right or wrong.
func TestMisled(t *testing.T) {
	at := func(relocations ...graphir.Relocation) *graphir.KernelNode {
		return &graphir.KernelNode{Params: []byte{0, 0, 0, 0, 0, 0, 0, 0, mutate.Plain, 0, 0, 0, 0, 0, 0, 0}, Relocations: relocations}
	}
	to := func(offset uint32, alloc uint32, byte uint64) graphir.Relocation {
		return graphir.Relocation{Offset: offset, Pointer: graphir.Pointer{Index: alloc, Offset: byte}}
	}
	words := []mutate.Word{{Address: true, Alloc: 1, Byte: 1 << 32}, {Offset: 8}}
	for name, tt := range map[string]struct {
		k   *graphir.KernelNode
		bad int
	}{
		"right":              {at(to(0, 1, 1<<32)), 0},
		"an address kept":    {at(), 1},
		"another allocation": {at(to(0, 0, 1<<32)), 1},
		"cut to 32 bits":     {at(to(0, 1, 0)), 1},
		"a pointer too many": {at(to(0, 1, 1<<32), to(8, 0, 0)), 1},
		"no kernel":          {nil, 2},
	} {
		spec := &graphir.Spec{Graphs: []graphir.Graph{{Nodes: []graphir.Node{{Params: tt.k}}}}}
		if bad := misled(spec, words); len(bad) != tt.bad {
			t.Errorf("%s: %q, want %d", name, bad, tt.bad)
		}
	}
}
