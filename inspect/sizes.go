package inspect

import (
	"fmt"
	"io"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/printable"
)

// Sizes has the sizes of an artifact's sections and graphs.
type Sizes struct {
	File     uint64        `json:"file"` // bytes
	Sections []SectionSize `json:"sections"`
	Graphs   []GraphSize   `json:"graphs"`
}

// SectionSize sums the sections of one kind; sizes are in bytes.
type SectionSize struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	Stored uint64 `json:"stored"`
	Size   uint64 `json:"size"`
}

// GraphSize counts the parts of one graph and of the graphs that it embeds.
type GraphSize struct {
	Label      string `json:"label"`
	Batch      int64  `json:"batch"`
	Nodes      int    `json:"nodes"`
	Edges      int    `json:"edges"`
	Kernels    int    `json:"kernel_nodes"`
	Pointers   int    `json:"pointers"`
	ParamBytes int    `json:"parameter_bytes"`
}

// Measure computes Sizes from the file's section table and its graphs.
func Measure(sections []artifacts.Section, s *graphir.Spec) (*Sizes, error) {
	out := &Sizes{Sections: []SectionSize{}, Graphs: []GraphSize{}}
	place := map[string]int{}
	for _, sec := range sections {
		out.File = max(out.File, sec.Offset+sec.StoredSize)
		i, ok := place[sec.Kind]
		if !ok {
			i = len(out.Sections)
			place[sec.Kind] = i
			out.Sections = append(out.Sections, SectionSize{Kind: sec.Kind})
		}
		out.Sections[i].Count++
		out.Sections[i].Stored += sec.StoredSize
		out.Sections[i].Size += sec.Size
	}
	err := s.EachGraph(func(_ int, g *graphir.Graph) error {
		out.Graphs = append(out.Graphs, sizeOf(s, g))
		return nil
	})
	return out, err
}

func sizeOf(s *graphir.Spec, g *graphir.Graph) GraphSize {
	out := GraphSize{Label: g.Label, Batch: g.Batch, Edges: len(g.Edges)}
	walk(s, g, func(n *graphir.Node) {
		out.Nodes++
		parameterPointers(n, func(graphir.Pointer) { out.Pointers++ })
		switch {
		case n.Kernel() != nil:
			out.Kernels++
			out.ParamBytes += len(n.Kernel().Params)
		case n.Type == graphir.NodeChild:
			out.Edges += len(s.Children[n.Target].Edges)
		}
	})
	return out
}

// WriteTable writes the sections, then the graphs.
func (s *Sizes) WriteTable(w io.Writer) error {
	t := printable.NewTable(w)
	t.Row("SECTION\tCOUNT\tSTORED\tBEFORE COMPRESSION")
	for _, x := range s.Sections {
		t.Row("%s\t%d\t%d\t%d", x.Kind, x.Count, x.Stored, x.Size)
	}
	t.Row("file\t\t%d\t", s.File)
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	t = printable.NewTable(w)
	t.Row("GRAPH\tBATCH\tNODES\tEDGES\tKERNELS\tPOINTERS\tPARAMETER BYTES")
	for _, g := range s.Graphs {
		t.Row("%s\t%d\t%d\t%d\t%d\t%d\t%d", g.Label, g.Batch, g.Nodes, g.Edges, g.Kernels, g.Pointers, g.ParamBytes)
	}
	return t.Flush()
}
