package graphir

import (
	"fmt"

	"medusa/graphir/graphpb"
)

// NodeType is a CUgraphNodeType. Types with parameters have a file each.
type NodeType uint8

const (
	NodeChild NodeType = 4
	NodeEmpty NodeType = 5
	// NodeEventWait and NodeEventRecord refer to an event outside of the graph.
	NodeEventWait   NodeType = 6
	NodeEventRecord NodeType = 7
)

// Node is one graph node. Target is the index in Children for a child graph node, and the index in Events for an event node.
type Node struct {
	Type   NodeType
	Target uint32
	Params Params // those of Type, or nil if it has none
}

// Params are the parameters of a node.
type Params interface {
	// extent counts the node's entries in each column.
	extent() extent
	// pointers visits every pointer, those of attributes included.
	pointers(visit func(Pointer))
	// key appends the parts of a node that a shape shares to the key of its table; encode writes the same to the file.
	key(e *tables, to []byte) []byte
	encode(e *tables, pb *graphpb.Shape)
	// collect writes the node's values into the columns.
	collect(c *columns, at *extent)
	validate(v *validator, path func() string)
	print(t *textWriter)
	clone() Params
	// writes visits at least the memory that the node writes, unless a kernel decides.
	writes(visit func(to Pointer, size uint64))
}

// nodeType has the facts about the nodes of one type, beside their parameters.
type nodeType struct {
	name   string
	has    func(p Params) bool // whether they are of the type; nil: it has none
	size   extent              // the entries of each node in the columns, except words and relocations
	buffer bool                // whether the parameters have words and relocations
	// lay makes the parameters of a decoded node, in memory for a whole graph; values come later.
	lay func(n *Node, in *bodies, at *extent, s *shape)
	// target checks the node's target; nil: it has none.
	target func(v *validator, n *Node, path func() string, children uint32)
}

// nodeTypes has a row for each type, which its file puts there. A type without a row is in no artifact.
var nodeTypes = [16]nodeType{
	NodeChild:       childNodes,
	NodeEmpty:       {name: "empty"},
	NodeEventWait:   {name: "event_wait", target: eventTarget},
	NodeEventRecord: {name: "event_record", target: eventTarget},
}

// are says whether parameters are of one type.
func are[P Params](p Params) bool {
	_, is := p.(P)
	return is
}

// known reports whether the table has a row for the type.
func (t NodeType) known() bool { return int(t) < len(nodeTypes) && nodeTypes[t].name != "" }

func (t NodeType) String() string {
	if t.known() {
		return nodeTypes[t].name
	}
	return fmt.Sprintf("unknown(%d)", uint8(t))
}

func (v *validator) node(n *Node, path func() string, children uint32) {
	if !n.Type.known() {
		v.bad(path(), "type %d does not go with the parameters that are set", n.Type)
		return
	}
	t := &nodeTypes[n.Type]
	if n.Target != 0 && t.target == nil {
		v.bad(path(), "type %d has no target", n.Type)
	}
	switch {
	case t.has == nil && n.Params != nil || t.has != nil && !t.has(n.Params):
		v.bad(path(), "type %d does not go with the parameters that are set", n.Type)
	case t.has != nil:
		n.Params.validate(v, path)
	case t.target != nil:
		t.target(v, n, path, children)
	}
}

func (n *Node) print(t *textWriter) {
	switch {
	case n.Params != nil:
		n.Params.print(t)
	case nodeTypes[n.Type].target != nil:
		t.printf(" %d", n.Target)
	}
}

// childNodes embed a graph.
var childNodes = nodeType{name: "child", target: func(v *validator, n *Node, path func() string, children uint32) {
	if n.Target >= children {
		v.bad(path(), "child graph %d of %d that come before", n.Target, children)
	}
}}

func eventTarget(v *validator, n *Node, path func() string, _ uint32) {
	if int64(n.Target) >= int64(len(v.spec.Events)) {
		v.bad(path(), "event %d of %d", n.Target, len(v.spec.Events))
	}
}
