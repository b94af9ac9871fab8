package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"medusa/inspect"
)

// DOT writes the graph in the language of Graphviz.
func DOT(w io.Writer, g *inspect.Graph) error {
	out := bufio.NewWriter(w)
	classes := classify(g)
	fmt.Fprintf(out, "digraph %s {\n  label=%s;\n  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n",
		quote("graph "+g.Label), quote(title(g)))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		c := classes.of[i]
		fmt.Fprintf(out, "  %d [label=%s, tooltip=%s, fillcolor=\"%s\"];\n", i, quote(headline(n)+"\n"+subtitle(n)), quote(tooltip(n)), pale(c))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(out, "  %d -> %d", e.From, e.To)
		if e.Type != 0 || e.FromPort != 0 || e.ToPort != 0 {
			fmt.Fprintf(out, " [style=dashed, label=%s]", quote(edgeText(e)))
		}
		fmt.Fprint(out, ";\n")
	}
	fmt.Fprint(out, "}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write graph as DOT: %w", err)
	}
	return nil
}

// quote writes a double-quoted string. Only the quote and the backslash are special in it.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
