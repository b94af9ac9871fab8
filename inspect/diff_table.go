package inspect

import (
	"fmt"
	"io"
)

// most is how many entries of a kind the table shows; JSON has them all.
const most = 12

// WriteTable writes the differences of two artifacts of these names, or that there are none.
func (d *Diff) WriteTable(w io.Writer, a, b string) error {
	if d.Empty() {
		_, err := fmt.Fprintf(w, "%s and %s do not differ\n", a, b)
		return err
	}
	t := newTable(w)
	t.row("WHAT\tA: %s\tB: %s", a, b)
	side := func(v *string) string {
		if v == nil {
			return "(none)"
		}
		return *v
	}
	for _, f := range d.Identity {
		t.row("%s (%s)\t%s\t%s", f.Key, f.Level, side(f.A), side(f.B))
	}
	for _, v := range d.Values {
		t.row("%s\t%s\t%s", v.Name, v.A, v.B)
	}
	d.Kernels.rows(t, "kernel")
	d.Allocations.rows(t, "")
	d.Graphs.rows(t)
	return t.Flush()
}

func (d *TableDiff) rows(t table, what string) {
	if what != "" {
		what += " "
	}
	only(t, what, d.OnlyA, d.OnlyB)
	for i, v := range d.Changed {
		if i == most {
			t.row("%s... and %d more\t\t", what, len(d.Changed)-most)
			break
		}
		t.row("%s%s\t%s\t%s", what, v.Name, v.A, v.B)
	}
}

func only(t table, what string, a, b []string) {
	for _, side := range []struct {
		names []string
		a, b  string
	}{{a, "present", "absent"}, {b, "absent", "present"}} {
		for i, name := range side.names {
			if i == most {
				t.row("%s... and %d more\t%s\t%s", what, len(side.names)-most, side.a, side.b)
				break
			}
			t.row("%s%s\t%s\t%s", what, name, side.a, side.b)
		}
	}
}

func (d *GraphsDiff) rows(t table) {
	only(t, "graph ", d.OnlyA, d.OnlyB)
	for i, g := range d.Changed {
		if i == most {
			t.row("graph ... and %d more\t\t", len(d.Changed)-most)
			break
		}
		for _, v := range g.Values {
			t.row("graph %s: %s\t%s\t%s", g.Label, v.Name, v.A, v.B)
		}
		shown := 0
		for _, n := range g.Nodes {
			if shown == most/3 {
				t.row("graph %s: ... and %d more nodes\t\t", g.Label, len(g.Nodes)-shown)
				break
			}
			for _, v := range n.Values {
				t.row("graph %s: node %d %s\t%s\t%s", g.Label, n.Index, v.Name, v.A, v.B)
			}
			shown++
		}
		if len(g.Edges) > 0 {
			t.row("graph %s: edges\t%s\t%s", g.Label, some(signed(g.Edges, '-'), most), some(signed(g.Edges, '+'), most))
		}
	}
}

func signed(edges []string, sign byte) []string {
	var out []string
	for _, e := range edges {
		if e[0] == sign {
			out = append(out, e[1:])
		}
	}
	return out
}
