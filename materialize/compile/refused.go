package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

var opaqueNodes = nodeOf(nodeType[*trace.Opaque]{
	kind:    func(_ *shape, v *trace.Opaque) (uint64, error) { return mix(7, uint64(v.Type)), nil },
	compile: (*graphCompiler).opaque,
	becomes: func(v *trace.Opaque) graphir.NodeType { return graphir.NodeType(v.Type) },
	compare: func(*compared, *trace.Opaque) error { return nil },
})

func nodeTypeName(t uint32) string {
	if int(t) < len(nodeTypeNames) && nodeTypeNames[t] != "" {
		return nodeTypeNames[t]
	}
	return fmt.Sprintf("node type %d", t)
}

var nodeTypeNames = []string{"kernel", "memcpy", "memset", "host function", "child graph", "empty", "event wait",
	"event record", "external semaphore signal", "external semaphore wait", "memory allocation", "memory free",
	"batch memory operation", "conditional", graphir.NodeCollective: "collective"}

// RefusedError is a graph that cannot be restored. It is found offline, never for the first time online.
type RefusedError struct {
	Graph  string
	Node   int
	Type   string
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("materialize graph %q: node %d (%s): %s", e.Graph, e.Node, e.Type, e.Reason)
}

// opaque refuses a node of which the recorder knows only the type and the reason of the refusal.
func (c *graphCompiler) opaque(i int, na, _ *trace.Opaque, out *graphir.Node) error {
	// mutant: node types that cannot be restored
	return &RefusedError{c.label, i, nodeTypeName(na.Type), na.Reason}
}
