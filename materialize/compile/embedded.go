package compile

import (
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

var childNodes = nodeOf(nodeType[*trace.Child]{
	makes: []graphir.NodeType{graphir.NodeChild},
	kind: func(s *shape, v *trace.Child) (uint64, error) {
		inner, err := newShape(s.r, s.g.Embedded[v.Child])
		if err != nil {
			return 0, err
		}
		slices.Sort(inner.place)
		return mix(append([]uint64{6}, inner.place...)...), nil
	},
	compile: func(c *graphCompiler, i int, na, nb *trace.Child, out *graphir.Node) (err error) {
		out.Type = graphir.NodeChild
		out.Target, err = c.child(i, na, nb)
		return err
	},
	compare: func(c *compared, n *trace.Child) error {
		inner := fmt.Sprintf("%s, graph embedded by node %d", c.label, c.at.node)
		return c.x.graph(&c.x.spec.Children[c.want.Target], inner, c.graph.Embedded[n.Child], padPlace{embedded: true, graph: int(c.want.Target)})
	},
})

// child compiles the graph that a child graph node embeds.
func (c *graphCompiler) child(i int, na, nb *trace.Child) (uint32, error) {
	out := graphir.Graph{}
	inner := &graphCompiler{shared: c.shared, ga: c.ga.Embedded[na.Child], gb: c.gb.Embedded[nb.Child], out: &out,
		label: fmt.Sprintf("%s, graph embedded by node %d", c.label, i), index: unnumbered, embedded: true}
	if err := inner.compile(); err != nil {
		return 0, err
	}
	number := len(c.spec.Children)
	c.spec.Children = append(c.spec.Children, out)
	for _, p := range inner.padding {
		if p.graph == unnumbered {
			// mutant: place of padding in an embedded graph
			p.graph = number
		}
		// mutant: padding of embedded graphs
		c.padding = append(c.padding, p)
	}
	return uint32(number), nil
}

const unnumbered = -1
