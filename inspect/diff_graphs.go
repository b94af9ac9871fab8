package inspect

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"medusa/graphir"
)

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data))[:23] }

func compareGraphs(a, b *graphir.Spec) (GraphsDiff, error) {
	out := GraphsDiff{OnlyA: []string{}, OnlyB: []string{}, Changed: []GraphDiff{}}
	inA, inB := labels(a), labels(b)
	ca, cb := a.NewCursor(), b.NewCursor()
	for i, label := range inA {
		j := slices.Index(inB, label)
		if j < 0 {
			out.OnlyA = append(out.OnlyA, label)
			continue
		}
		ga, err := load(ca, a, i)
		if err != nil {
			return out, err
		}
		gb, err := load(cb, b, j)
		if err != nil {
			return out, err
		}
		d := compareGraph(ga, gb)
		if d.Label = label; len(d.Values)+len(d.Nodes)+len(d.Edges) > 0 {
			out.Changed = append(out.Changed, d)
		}
	}
	for _, label := range inB {
		if !slices.Contains(inA, label) {
			out.OnlyB = append(out.OnlyB, label)
		}
	}
	return out, nil
}

// labels makes labels unique: it numbers graphs with the same label in their order.
func labels(s *graphir.Spec) []string {
	var entries []entry
	for i := range s.Graphs {
		entries = append(entries, entry{name: s.Graphs[i].Label})
	}
	var out []string
	for _, e := range unique(entries) {
		out = append(out, e.name)
	}
	return out
}

func compareGraph(a, b *Graph) GraphDiff {
	d := GraphDiff{Values: []ValueDiff{}, Nodes: []NodeDiff{}, Edges: []string{}}
	value := func(name string, x, y any) {
		if x, y := fmt.Sprint(x), fmt.Sprint(y); x != y {
			d.Values = append(d.Values, ValueDiff{name, x, y})
		}
	}
	value("batch", a.Batch, b.Batch)
	value("instantiate flags", a.InstantiateFlags, b.InstantiateFlags)
	value("nodes", len(a.Nodes), len(b.Nodes))
	if len(a.Nodes) == len(b.Nodes) {
		for i := range a.Nodes {
			if values := compareNode(&a.Nodes[i], &b.Nodes[i]); len(values) > 0 {
				d.Nodes = append(d.Nodes, NodeDiff{i, values})
			}
		}
	}
	d.Edges = append(edgesOnlyIn(a, b, "-"), edgesOnlyIn(b, a, "+")...)
	for i := 0; i < min(len(a.Children), len(b.Children)); i++ {
		child := compareGraph(&a.Children[i], &b.Children[i])
		if n := len(child.Values) + len(child.Nodes) + len(child.Edges); n > 0 {
			d.Values = append(d.Values, ValueDiff{fmt.Sprintf("embedded graph %d", i), fmt.Sprintf("%d nodes", len(a.Children[i].Nodes)),
				fmt.Sprintf("%d nodes, of which %d differ", len(b.Children[i].Nodes), len(child.Nodes))})
		}
	}
	return d
}

func compareNode(a, b *Node) []ValueDiff {
	var out []ValueDiff
	value := func(name string, x, y any) {
		if x, y := fmt.Sprint(x), fmt.Sprint(y); x != y {
			out = append(out, ValueDiff{name, x, y})
		}
	}
	value("type", a.Type, b.Type)
	value("kernel", a.Kernel, b.Kernel)
	value("grid", dims(a.Grid), dims(b.Grid))
	value("block", dims(a.Block), dims(b.Block))
	value("shared bytes", a.SharedBytes, b.SharedBytes)
	value("attributes", a.Attributes, b.Attributes)
	value("source", a.Source, b.Source)
	value("target", a.Target, b.Target)
	value("detail", a.Detail, b.Detail)
	if len(a.Arguments) != len(b.Arguments) {
		value("parameters", len(a.Arguments), len(b.Arguments))
		return out
	}
	for i := range a.Arguments {
		x, y := &a.Arguments[i], &b.Arguments[i]
		value(fmt.Sprintf("parameter %d", i), fmt.Sprintf("%s at %d", x.Value, x.Offset), fmt.Sprintf("%s at %d", y.Value, y.Offset))
	}
	return out
}

func edgesOnlyIn(g, other *Graph, sign string) []string {
	have := make(map[Edge]bool, len(other.Edges))
	for _, e := range other.Edges {
		have[e] = true
	}
	out := []string{}
	for _, e := range g.Edges {
		if !have[e] {
			out = append(out, fmt.Sprintf("%s%d>%d", sign, e.From, e.To))
		}
	}
	return out
}
