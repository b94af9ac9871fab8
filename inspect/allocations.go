package inspect

import (
	"io"
	"strings"

	"medusa/graphir"
	"medusa/internal/printable"
)

// Allocation is one entry of the allocation sequence. Sizes are in bytes.
type Allocation struct {
	Index    int      `json:"index"`
	Kind     string   `json:"kind"`
	Owner    string   `json:"owner"` // engine: the engine repeats it online; graph: the restorer makes it
	Size     uint64   `json:"size"`
	Live     bool     `json:"live"` // not freed when the engine was ready
	Saved    uint64   `json:"saved"`
	Pointers int      `json:"pointers"` // of all graphs, into this allocation
	Use      string   `json:"use"`      // role of the tensor that the engine named in it: weight, kv, input, output; else "-"
	Tensors  []string `json:"tensors"`
}

// Allocations lists the allocation sequence.
type Allocations []Allocation

// ListAllocations lists every allocation with its maker and its use.
func ListAllocations(s *graphir.Spec) (Allocations, error) {
	out := make(Allocations, len(s.Allocations))
	for i, a := range s.Allocations {
		out[i] = Allocation{Index: i, Kind: a.Kind.String(), Owner: a.Owner.String(), Size: a.Size, Live: a.Live, Use: "-", Tensors: []string{}}
	}
	count := func(p graphir.Pointer) {
		if p.Space == graphir.SpaceAlloc {
			out[p.Index].Pointers++
		}
	}
	err := s.EachGraph(func(_ int, g *graphir.Graph) error {
		walk(s, g, func(n *graphir.Node) { parameterPointers(n, count) })
		return nil
	})
	for i := range s.Contents {
		if c := &s.Contents[i]; c.Space == graphir.SpaceAlloc {
			out[c.Alloc].Saved += uint64(len(c.Data))
		}
	}
	for i := range s.Tensors {
		n := &s.Tensors[i]
		a := &out[n.At.Index]
		if a.Use == "-" {
			a.Use = n.Role.String()
		} else if !strings.Contains(a.Use, n.Role.String()) {
			a.Use += "+" + n.Role.String()
		}
		a.Tensors = append(a.Tensors, n.Name)
	}
	return out, err
}

// parameterPointers visits a node's pointers, except those of attributes.
func parameterPointers(n *graphir.Node, visit func(graphir.Pointer)) {
	if n.Kernel() == nil {
		n.Pointers(visit)
		return
	}
	for i := range n.Kernel().Relocations {
		visit(n.Kernel().Relocations[i].Pointer)
	}
}

// WriteTable writes one line per allocation.
func (as Allocations) WriteTable(w io.Writer) error {
	t := printable.NewTable(w)
	t.Row("ALLOC\tKIND\tOWNER\tBYTES\tAT READY\tSAVED\tPOINTERS\tUSE\tTENSORS")
	for _, a := range as {
		state := "live"
		if !a.Live {
			state = "freed"
		}
		t.Row("%d\t%s\t%s\t%d\t%s\t%d\t%d\t%s\t%s", a.Index, a.Kind, a.Owner, a.Size, state, a.Saved, a.Pointers, a.Use, some(a.Tensors, 3))
	}
	return t.Flush()
}
