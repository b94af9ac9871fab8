package rebuild

import (
	"strings"
	"testing"

	"medusa/graphir"
)

// Every type of node that the IR knows can be built.
func TestEveryNodeTypeHasARow(t *testing.T) {
	for n := range 256 {
		known := !strings.HasPrefix(graphir.NodeType(n).String(), "unknown")
		if row := n < len(nodeTypes) && nodeTypes[n] != nil; row != known {
			t.Errorf("%s: known to the IR: %v, a row: %v", graphir.NodeType(n), known, row)
		}
	}
}
