package graphir_test

import (
	"testing"

	"medusa/graphir"
	"medusa/test/randspec"
)

// On shared machines, times cannot reveal a slowdown by half. The number of Go allocations for fixed inputs can.
func TestAllocationsPerNode(t *testing.T) {
	small, large := randspec.Model(35, 32), randspec.Model(120, 90)
	for name, test := range map[string]struct {
		spec *graphir.Spec
		most float64 // per node
	}{"in memory": {small, 0.1}, "row groups": {large, 0.03}} {
		data, err := graphir.Encode(test.spec)
		if err != nil {
			t.Fatal(err)
		}
		nodes := 0
		for i := range test.spec.Graphs {
			nodes += len(test.spec.Graphs[i].Nodes)
		}
		n := testing.AllocsPerRun(1, func() {
			s, err := graphir.Decode(data)
			if err == nil {
				err = s.EachGraph(func(int, *graphir.Graph) error { return nil })
			}
			if err != nil {
				t.Error(err)
			}
		})
		if per := n / float64(nodes); per > test.most {
			t.Errorf("%s: decoding %d nodes makes %.3f allocations each, at most %.3f", name, nodes, per, test.most)
		} else {
			t.Logf("%s: %.4f a node", name, per)
		}
	}
}
