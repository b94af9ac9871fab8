package inspect

import (
	"fmt"
	"io"

	"medusa/graphir"
	"medusa/internal/printable"
)

// Kernel is one entry of the kernel-name table, with the numbers of its uses.
type Kernel struct {
	Index      int    `json:"index"`
	Name       string `json:"name"` // mangled
	Module     uint32 `json:"module"`
	Kind       string `json:"kind"` // of its module: loaded, library or hidden
	DSO        string `json:"dso,omitempty"`
	Image      string `json:"image,omitempty"` // SHA-256 of the module's image; absent if the recorder did not see its load
	Parameters int    `json:"parameters"`
	ParamBytes uint32 `json:"parameter_bytes"`
	Nodes      int    `json:"nodes"`
	Graphs     int    `json:"graphs"`
	Triggered  bool   `json:"triggered"` // a triggering layer loads its module
}

// Kernels lists the kernel-name table.
type Kernels []Kernel

// ListKernels counts each kernel's nodes in all graphs and in the graphs that they embed.
func ListKernels(s *graphir.Spec) (Kernels, error) {
	out := make(Kernels, len(s.Kernels))
	for i := range s.Kernels {
		k := &s.Kernels[i]
		m := &s.Modules[k.Module]
		out[i] = Kernel{Index: i, Name: k.Name, Module: k.Module, Kind: m.Kind.String(), DSO: m.DSO, Parameters: len(k.Params)}
		if m.ImageSHA256 != [32]byte{} {
			out[i].Image = fmt.Sprintf("%x", m.ImageSHA256)
		}
		if n := len(k.Params); n > 0 {
			out[i].ParamBytes = k.Params[n-1].Offset + k.Params[n-1].Size
		}
	}
	err := s.EachGraph(func(_ int, g *graphir.Graph) error {
		seen := map[uint32]bool{}
		walk(s, g, func(n *graphir.Node) {
			if n.Kernel() == nil {
				return
			}
			out[n.Kernel().Kernel].Nodes++
			if !seen[n.Kernel().Kernel] {
				seen[n.Kernel().Kernel] = true
				out[n.Kernel().Kernel].Graphs++
			}
		})
		return nil
	})
	for _, tr := range s.Triggers {
		for _, k := range tr.Kernels {
			out[k].Triggered = true
		}
	}
	return out, err
}

// walk visits a graph's nodes and those of the graphs that it embeds.
func walk(s *graphir.Spec, g *graphir.Graph, visit func(*graphir.Node)) {
	for i := range g.Nodes {
		visit(&g.Nodes[i])
		if g.Nodes[i].Type == graphir.NodeChild {
			walk(s, &s.Children[g.Nodes[i].Target], visit)
		}
	}
}

// WriteTable writes one line per kernel.
func (ks Kernels) WriteTable(w io.Writer) error {
	t := printable.NewTable(w)
	t.Row("KERNEL\tNODES\tGRAPHS\tPARAMETERS\tMODULE\tNAME")
	for _, k := range ks {
		module := fmt.Sprintf("%d %s", k.Module, k.Kind)
		if k.DSO != "" {
			module += " " + k.DSO
		}
		if k.Triggered {
			module += " (triggered)"
		}
		t.Row("%d\t%d\t%d\t%d (%d bytes)\t%s\t%s", k.Index, k.Nodes, k.Graphs, k.Parameters, k.ParamBytes, module, k.Name)
	}
	return t.Flush()
}
