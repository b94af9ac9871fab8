package main

import "testing"

// The overview tells graphs apart that have no label, no executable graph, or are part of another one.
func TestTraceGraphRows(t *testing.T) {
	for want, g := range map[string]traceGraph{
		"decode-1: 2 nodes, 1 edge":                               {Label: "decode-1", Nodes: 2, Edges: 1, Instantiated: 1},
		"decode-1: 1 node, 0 edges, never instantiated":           {Label: "decode-1", Nodes: 1},
		"(without a label): 3 nodes, 2 edges":                     {Nodes: 3, Edges: 2, Instantiated: 2},
		"(embedded in another): 3 nodes, 2 edges":                 {Nodes: 3, Edges: 2, Embedded: true},
		"(without a label): 3 nodes, 2 edges, never instantiated": {Nodes: 3, Edges: 2},
	} {
		if got := g.row(); got != want {
			t.Errorf("%+v: %q, want %q", g, got, want)
		}
	}
}
