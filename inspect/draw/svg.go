package draw

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"

	"medusa/inspect"
)

const (
	headHeight  = 34.0 // the title's
	legendLine  = 20.0
	legendWidth = 236.0
)

// The picture is viewed in browsers, so its colours follow the reader's setting.
const style = `<style>
svg{color-scheme:light dark;--ink:#1c2128;--soft:#57606a;--card:#fff;--back:#f6f8fa;--edge:#8c959f;background:var(--back);font-family:system-ui,sans-serif}
@media (prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa4ae;--card:#1c2128;--back:#0d1117;--edge:#6e7681}}
.b{fill:var(--card);stroke:var(--edge);stroke-opacity:.5}.h{fill:var(--ink);font-size:12px;font-weight:600}.s{fill:var(--soft);font-size:10.5px}
.t{fill:var(--ink);font-size:15px;font-weight:600}.e{fill:none;stroke:var(--edge);stroke-width:1.3}.p{stroke-dasharray:4 3}.n:hover .b{stroke:var(--ink);stroke-opacity:1}
</style>
`

// SVG writes a picture of the graph: one box per node, coloured by kernel. The tooltip has all other values.
func SVG(w io.Writer, g *inspect.Graph) error {
	out := bufio.NewWriter(w)
	edges := make([][2]int, len(g.Edges))
	for i, e := range g.Edges {
		edges[i] = [2]int{int(e.From), int(e.To)}
	}
	l, c := arrange(len(g.Nodes), edges), classify(g)
	width := max(l.width, 2*margin+2*legendWidth)
	perLine := int((width - 2*margin) / legendWidth)
	entries := c.legend(len(g.Nodes))
	top := margin + headHeight + legendLine*float64((len(entries)+perLine-1)/perLine)
	height := top + l.height
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+"\n<title>%s</title>\n%s",
		number(width), number(height), number(width), number(height), text(title(g)), style)
	fmt.Fprint(out, `<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#8c959f"/></marker></defs>`+"\n")
	fmt.Fprintf(out, `<text class="t" x="%s" y="%s">%s</text>`+"\n", number(margin), number(margin+12), text(title(g)))
	for i, e := range entries {
		x, y := margin+legendWidth*float64(i%perLine), margin+headHeight+legendLine*float64(i/perLine)
		fmt.Fprintf(out, `<rect x="%s" y="%s" width="10" height="10" rx="2" fill="%s"/><text class="s" x="%s" y="%s">%s</text>`+"\n",
			number(x), number(y-9), color(e.class), number(x+16), number(y), text(e.text))
	}
	fmt.Fprintf(out, `<g transform="translate(0 %s)">`+"\n", number(top))
	for i, line := range l.edges {
		class := "e"
		e := g.Edges[i]
		if e.Type != 0 || e.FromPort != 0 || e.ToPort != 0 {
			class = "e p"
		}
		fmt.Fprintf(out, `<path class="%s" d="%s" marker-end="url(#a)"/>`+"\n", class, curve(line))
	}
	for i := range g.Nodes {
		l.box(out, &g.Nodes[i], c.of[i])
	}
	fmt.Fprint(out, "</g>\n</svg>\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write graph as SVG: %w", err)
	}
	return nil
}

func (l *layout) box(out io.Writer, n *inspect.Node, class int) {
	x, y := l.boxes[n.Index].x-boxWidth/2, l.boxes[n.Index].y-boxHeight/2
	fmt.Fprintf(out, `<g class="n"><title>%s</title><rect class="b" x="%s" y="%s" width="%s" height="%s" rx="5"/>`,
		text(tooltip(n)), number(x), number(y), number(boxWidth), number(boxHeight))
	fmt.Fprintf(out, `<rect x="%s" y="%s" width="5" height="%s" rx="2.5" fill="%s"/>`, number(x), number(y), number(boxHeight), color(class))
	fmt.Fprintf(out, `<text class="h" x="%s" y="%s">%s</text><text class="s" x="%s" y="%s">%s</text></g>`+"\n",
		number(x+14), number(y+15), text(headline(n)), number(x+14), number(y+29), text(fit(subtitle(n), 38)))
}

// curve draws straight lines inside layers and bends between them.
func curve(line []point) string {
	var d strings.Builder
	for i, p := range line {
		switch {
		case i == 0:
			fmt.Fprintf(&d, "M%s %s", number(p.x), number(p.y))
		case p.x == line[i-1].x:
			fmt.Fprintf(&d, "V%s", number(p.y))
		case p.y == line[i-1].y:
			fmt.Fprintf(&d, "H%s", number(p.x))
		default:
			middle := (line[i-1].y + p.y) / 2
			fmt.Fprintf(&d, "C%s %s %s %s %s %s", number(line[i-1].x), number(middle), number(p.x), number(middle), number(p.x), number(p.y))
		}
	}
	return d.String()
}

type legendEntry struct {
	class int
	text  string
}

func (c *classes) legend(nodes int) []legendEntry {
	var out []legendEntry
	for i, name := range c.names {
		out = append(out, legendEntry{i, fmt.Sprintf("%s × %d", fit(ShortName(name), 30), c.counts[i])})
		nodes -= c.counts[i]
	}
	if nodes > 0 {
		out = append(out, legendEntry{-1, fmt.Sprintf("others × %d", nodes)})
	}
	return out
}

// number writes a coordinate with at most one decimal, so that processors that round differently give the same picture.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func text(s string) string { return html.EscapeString(s) }
