package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"medusa/inspect"
)

// palette can be distinguished by colour-blind readers too (Okabe and Ito). Kernels beyond the most frequent ones are grey.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#882255"}

const grey = "#8b949e"

// classes assigns colours to kernels, the most frequent first.
type classes struct {
	of     []int // per node: an index into names, or -1
	names  []string
	counts []int
}

func classify(g *inspect.Graph) *classes {
	count := map[string]int{}
	for i := range g.Nodes {
		count[what(&g.Nodes[i])]++
	}
	c := &classes{}
	for name := range count {
		c.names = append(c.names, name)
	}
	slices.SortFunc(c.names, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	if len(c.names) > len(palette) {
		c.names = c.names[:len(palette)]
	}
	for _, name := range c.names {
		c.counts = append(c.counts, count[name])
	}
	for i := range g.Nodes {
		c.of = append(c.of, slices.Index(c.names, what(&g.Nodes[i])))
	}
	return c
}

func color(class int) string {
	if class < 0 {
		return grey
	}
	return palette[class]
}

// pale mixes a colour with white: a background for dark text.
func pale(class int) string {
	var r, g, b int
	// All colours of the palette have this form, so Sscanf cannot fail.
	_, _ = fmt.Sscanf(color(class), "#%02x%02x%02x", &r, &g, &b)
	mix := func(v int) int { return 255 - (255-v)/4 }
	return fmt.Sprintf("#%02x%02x%02x", mix(r), mix(g), mix(b))
}

func what(n *inspect.Node) string {
	if n.Kernel != "" {
		return n.Kernel
	}
	return strings.ReplaceAll(n.Type, "_", " ")
}

func title(g *inspect.Graph) string {
	return fmt.Sprintf("%s · batch %d · %d nodes · %d edges", g.Label, g.Batch, len(g.Nodes), len(g.Edges))
}

func headline(n *inspect.Node) string { return fit(ShortName(what(n)), 28) }

// subtitle shows the launch dimensions of a kernel node, and the destination of other nodes.
func subtitle(n *inspect.Node) string {
	if n.Kernel == "" {
		return strings.TrimSuffix(fmt.Sprintf("#%d · %s", n.Index, n.Target), " · ")
	}
	s := fmt.Sprintf("#%d · grid %s · block %s", n.Index, extent(n.Grid), extent(n.Block))
	if n.SharedBytes != 0 {
		s += fmt.Sprintf(" · %s", inspect.Bytes(uint64(n.SharedBytes)))
	}
	return s
}

func extent(d []uint32) string {
	d = slices.Clone(d)
	for len(d) > 1 && d[len(d)-1] == 1 {
		d = d[:len(d)-1]
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(d), "[]"), " ", "×")
}

// tooltip has all values of a node, one line per parameter.
func tooltip(n *inspect.Node) string {
	lines := []string{fmt.Sprintf("node %d: %s", n.Index, what(n))}
	if n.Kernel != "" {
		lines = append(lines, fmt.Sprintf("grid %v block %v, %d bytes of shared memory", n.Grid, n.Block, n.SharedBytes))
	}
	for _, a := range n.Arguments {
		lines = append(lines, fmt.Sprintf("%+d: %s", a.Offset, a.Value))
	}
	if n.Source != "" {
		lines = append(lines, "from "+n.Source)
	}
	if n.Target != "" {
		lines = append(lines, "to "+n.Target)
	}
	if n.Detail != "" {
		lines = append(lines, n.Detail)
	}
	return strings.Join(lines, "\n")
}

func edgeText(e inspect.Edge) string {
	return fmt.Sprintf("port %d to port %d, type %d", e.FromPort, e.ToPort, e.Type)
}
