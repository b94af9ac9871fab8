package inspect

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"medusa/internal/printable"
)

// most is the number of entries of a kind that the table shows. JSON has all of them.
const most = 12

// WriteTable writes the differences of the artifacts with these names, or a line that they have none.
func (d *Diff) WriteTable(w io.Writer, a, b string) error {
	if d.Empty() {
		_, err := printable.Fprintf(w, "%s and %s do not differ\n", a, b)
		return err
	}
	t := &sides{Table: printable.NewTable(w)}
	t.Row("WHAT\tA: %s\tB: %s", a, b)
	d.rows(t)
	for i, p := range d.Peers {
		if !p.Empty() {
			t.Row("rank %d\t\t", i+1)
			p.rows(t)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, t.long.String())
	return err
}

func (d *Diff) rows(t *sides) {
	side := func(v *string) string {
		if v == nil {
			return "(none)"
		}
		return *v
	}
	for _, f := range d.Identity {
		t.add(fmt.Sprintf("%s (%s)", f.Key, f.Level), side(f.A), side(f.B))
	}
	for _, v := range d.Values {
		t.add(v.Name, v.A, v.B)
	}
	d.Kernels.rows(t, "kernel")
	d.Allocations.rows(t, "")
	d.Graphs.rows(t)
}

// widest is the length in characters up to which a value is shown in the table.
const widest = 64

// sides is a table of values of A and B. Long values, such as an engine's arguments, follow the table, one under the other, so
// that a difference is easy to see.
type sides struct {
	printable.Table
	long strings.Builder
}

func (s *sides) add(what, a, b string) {
	if max(utf8.RuneCountInString(a), utf8.RuneCountInString(b)) > widest {
		printable.Fprintf(&s.long, "%s\n  A  %s\n  B  %s\n", what, a, b)
		return
	}
	s.Row("%s\t%s\t%s", what, a, b)
}

func (d *TableDiff) rows(t *sides, what string) {
	if what != "" {
		what += " "
	}
	only(t, what, d.OnlyA, d.OnlyB)
	for i, v := range d.Changed {
		if i == most {
			t.Row("%s... and %d more\t\t", what, len(d.Changed)-most)
			break
		}
		t.add(what+v.Name, v.A, v.B)
	}
}

func only(t *sides, what string, a, b []string) {
	for _, side := range []struct {
		names []string
		a, b  string
	}{{a, "present", "absent"}, {b, "absent", "present"}} {
		for i, name := range side.names {
			if i == most {
				t.Row("%s... and %d more\t%s\t%s", what, len(side.names)-most, side.a, side.b)
				break
			}
			t.add(what+name, side.a, side.b)
		}
	}
}

func (d *GraphsDiff) rows(t *sides) {
	only(t, "graph ", d.OnlyA, d.OnlyB)
	for i, g := range d.Changed {
		if i == most {
			t.Row("graph ... and %d more\t\t", len(d.Changed)-most)
			break
		}
		for _, v := range g.Values {
			t.add(fmt.Sprintf("graph %s: %s", g.Label, v.Name), v.A, v.B)
		}
		shown := 0
		for _, n := range g.Nodes {
			if shown == most/3 {
				t.Row("graph %s: ... and %d more nodes\t\t", g.Label, len(g.Nodes)-shown)
				break
			}
			for _, v := range n.Values {
				t.add(fmt.Sprintf("graph %s: node %d %s", g.Label, n.Index, v.Name), v.A, v.B)
			}
			shown++
		}
		if len(g.Edges) > 0 {
			t.add(fmt.Sprintf("graph %s: edges", g.Label), cmp.Or(some(signed(g.Edges, '-'), most), "(none)"), cmp.Or(some(signed(g.Edges, '+'), most), "(none)"))
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
