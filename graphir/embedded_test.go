package graphir_test

import (
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
)

// A graph that embeds graphs counts with all nodes that a walk visits. A few bytes can describe more nodes than any process can
// walk.
func TestEmbeddedGraphsAreBounded(t *testing.T) {
	// chain returns a Spec in which each child embeds the previous one width times, and the graph embeds the last child.
	chain := func(depth, width int) *graphir.Spec {
		s := &graphir.Spec{Children: []graphir.Graph{{Nodes: []graphir.Node{{Type: graphir.NodeEmpty}}}}}
		for i := range depth - 1 {
			var g graphir.Graph
			for range width {
				g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeChild, Target: uint32(i)})
			}
			s.Children = append(s.Children, g)
		}
		s.Graphs = []graphir.Graph{{Label: "g", Batch: 1, Nodes: []graphir.Node{{Type: graphir.NodeChild, Target: uint32(depth - 1)}}}}
		return s
	}
	for _, tt := range []struct {
		name string
		spec *graphir.Spec
		want string
	}{
		{"as deep as may be", chain(64, 1), ""},
		{"deeper", chain(65, 1), "children[64]: graphs are embedded in each other 65 times (at most 64)"},
		{"doubling", chain(17, 2), ""},
		{"doubling more than a million times", chain(21, 2), "graphs[0]: its nodes and those of the graphs before it embed more than 1048576 nodes"},
		{"doubling beyond counting", chain(64, 2), "graphs[0]: its nodes and those of the graphs before it embed more than 1048576 nodes"},
	} {
		encoded, err := graphir.Encode(tt.spec)
		if err == nil {
			_, err = graphir.Decode(encoded)
		}
		if valid := tt.spec.Validate(); tt.want == "" && (err != nil || valid != nil) {
			t.Errorf("%s: %v, %v", tt.name, err, valid)
		} else if tt.want != "" && (valid == nil || !strings.Contains(valid.Error(), tt.want)) {
			t.Errorf("%s: want %q, got %v", tt.name, tt.want, valid)
		} else if tt.want != "" && err == nil {
			t.Errorf("%s: decoded", tt.name)
		}
	}
	// Large enough for row groups: 30 graphs, each of which embeds the same child 20 times.
	rows := third()
	child := len(rows.Children)
	rows.Children = append(rows.Children, graphir.Graph{})
	for i := range rows.Graphs {
		for range 20 {
			rows.Graphs[i].Nodes = append(rows.Graphs[i].Nodes, graphir.Node{Type: graphir.NodeChild, Target: uint32(child)})
		}
	}
	spec := reread(t, rows)
	for nodes, want := range map[int]string{1500: "", 1800: "graphs[29]: its nodes and those of the graphs before it embed more than 1048576 nodes"} {
		spec.Children[child].Nodes = slices.Repeat([]graphir.Node{{Type: graphir.NodeEmpty}}, nodes)
		if err := spec.Validate(); spec.Rows == nil || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d nodes: %v, want %q", nodes, err, want)
		}
	}
}
