package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"medusa/graphir"
	"medusa/test/testenv"
)

// Two ranks restore from an artifact that was made with one device, and each control of it ends as it has to. make test-ranks-alone has more ranks, and
// all kinds of calls.
func TestAlone(t *testing.T) {
	testenv.Build(t, "lib", "bin", "build/ranks")
	t.Chdir(testenv.Root(t))
	var seen compared
	together := test{ranks: 2, artifact: filepath.Join(t.TempDir(), "2.medusa"), seen: &seen}
	if err := together.make(); err != nil {
		t.Fatal(err)
	}
	alone := together
	alone.artifact, alone.noAddresses = alone.artifact+".alone", true
	if made := alone.makeAlone("0"); made.err != nil {
		t.Fatal(made)
	}
	t.Run("equal", func(t *testing.T) {
		if err := compareParts(together.artifact, alone.artifact); err != nil {
			t.Error(err)
		}
	})
	t.Run("restored", func(t *testing.T) {
		for _, addresses := range []string{"exact", "relocate"} {
			if err := alone.restore(addresses); err != nil || seen.tokens == 0 || seen.differences != 0 {
				t.Errorf("%s: %d of %d tokens differ, %v", addresses, seen.differences, seen.tokens, err)
			}
		}
	})
	for _, c := range aloneControls {
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(&alone); err != nil {
				t.Error(err)
			}
		})
	}
}

// The comparison of artifacts sees a difference at any depth, also behind an interface and in unexported fields.
func TestWalk(t *testing.T) {
	node := func(root uint32) graphir.Graph {
		return graphir.Graph{Nodes: []graphir.Node{{}, {Type: graphir.NodeCollective, Params: graphir.NewCollective(graphir.Collective{Root: root})}}}
	}
	for _, tt := range []struct {
		a, b graphir.Graph
		want int
	}{
		{node(1), node(1), 0},
		{node(1), node(2), 1},
		{node(1), graphir.Graph{}, 1},
	} {
		w := walk{seen: map[[2]uintptr]bool{}}
		w.compare("", reflect.ValueOf(tt.a), reflect.ValueOf(tt.b))
		if len(w.differ) != tt.want {
			t.Errorf("%q differ, want %d", w.differ, tt.want)
		}
	}
	for path, want := range map[string]bool{"Created.ext": true, "Verification.Graphs[2].Canary": true, "Verification.Graphs[2].BytesCompared": false,
		"Spec.Graphs[0].Nodes[1].Type": false, "KV.KVBytes": false, "Verification.Unchanged": false} {
		if mayDiffer.MatchString(path) != want {
			t.Errorf("%s may differ: %v", path, !want)
		}
	}
	together := graphir.Spec{Contents: []graphir.Content{{Data: []byte{1, 2, 3}}}}
	alone := graphir.Spec{Contents: []graphir.Content{{Data: []byte{1, 0, 3}, Unstable: []graphir.Range{{Offset: 1, Size: 1}}}}}
	if n := equateRemains(&together, &alone); n != 1 || !slices.Equal(together.Contents[0].Data, alone.Contents[0].Data) {
		t.Errorf("%d bytes of remains, %v", n, together.Contents[0].Data)
	}
}
