package inspect

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"medusa/graphir"
	"medusa/internal/printable"
)

// Graph is one captured graph, or one that a child graph node embeds.
type Graph struct {
	Index            int     `json:"index"`
	Label            string  `json:"label"`
	Batch            int64   `json:"batch"`
	InstantiateFlags uint64  `json:"instantiate_flags"`
	Nodes            []Node  `json:"nodes"`
	Edges            []Edge  `json:"edges"`
	Children         []Graph `json:"children,omitempty"` // graphs that its nodes embed, in node order
}

// Node is one graph node. Fields that do not apply to its type are absent.
type Node struct {
	Index       int         `json:"index"`
	Type        string      `json:"type"`
	Kernel      string      `json:"kernel,omitempty"` // mangled
	Module      *uint32     `json:"module,omitempty"`
	Grid        []uint32    `json:"grid,omitempty"` // blocks in x, y, z
	Block       []uint32    `json:"block,omitempty"`
	SharedBytes uint32      `json:"shared_bytes,omitempty"`
	Arguments   []Argument  `json:"arguments,omitempty"`
	Attributes  []Attribute `json:"attributes,omitempty"`
	Source      string      `json:"source,omitempty"`
	Target      string      `json:"target,omitempty"`
	Detail      string      `json:"detail,omitempty"` // the other parameters of a memset or memcpy
	After       []uint32    `json:"after"`            // nodes on which it depends
}

// Argument is one parameter of a kernel's layout: a constant, a pointer as alloc#i+offset, or a struct with both.
type Argument struct {
	Offset   uint32    `json:"offset"` // in the parameter buffer, bytes
	Size     uint32    `json:"size"`   // bytes
	Gap      bool      `json:"gap,omitempty"`
	Value    string    `json:"value"`
	Pointers []Pointer `json:"pointers,omitempty"`
}

// Pointer is an indirect index pointer in the parameter buffer.
type Pointer struct {
	At     uint32 `json:"at"`    // in the parameter buffer, bytes
	Space  string `json:"space"` // alloc, global or host
	Index  uint32 `json:"index"`
	Offset uint64 `json:"offset"` // bytes
}

// Attribute is a CUlaunchAttributeID and the bytes of its value without trailing zeros.
type Attribute struct {
	ID    uint32 `json:"id"`
	Value string `json:"value"`
	Base  string `json:"base,omitempty"`
}

// Edge makes To run after From.
type Edge struct {
	From     uint32 `json:"from"`
	To       uint32 `json:"to"`
	FromPort uint8  `json:"from_port,omitempty"`
	ToPort   uint8  `json:"to_port,omitempty"`
	Type     uint8  `json:"type,omitempty"`
}

// NotFoundError means that no graph has this name. It lists the labels that exist.
type NotFoundError struct {
	Name   string
	Labels []string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("find graph %q: no graph has this label or index (there are %d: %s)", e.Name, len(e.Labels), some(e.Labels, 6))
}

// FindGraph finds a graph by its label or, if no graph has that label, by its index.
func FindGraph(s *graphir.Spec, name string) (*Graph, error) {
	labels := make([]string, len(s.Graphs))
	for i := range s.Graphs {
		if labels[i] = s.Graphs[i].Label; labels[i] == name {
			return load(s.NewCursor(), s, i)
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(s.Graphs) {
		return load(s.NewCursor(), s, i)
	}
	return nil, &NotFoundError{name, labels}
}

func load(c *graphir.Cursor, s *graphir.Spec, index int) (*Graph, error) {
	g, err := c.Graph(index)
	if err != nil {
		return nil, err
	}
	return describe(s, index, g), nil
}

func describe(s *graphir.Spec, index int, g *graphir.Graph) *Graph {
	out := &Graph{Index: index, Label: g.Label, Batch: g.Batch, InstantiateFlags: g.InstantiateFlags,
		Nodes: make([]Node, len(g.Nodes)), Edges: []Edge{}}
	for i := range g.Nodes {
		out.Nodes[i] = describeNode(s, i, &g.Nodes[i])
		if n := &g.Nodes[i]; n.Type == graphir.NodeChild {
			out.Children = append(out.Children, *describe(s, int(n.Target), &s.Children[n.Target]))
		}
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, Edge{e.From, e.To, e.FromPort, e.ToPort, e.Type})
		out.Nodes[e.To].After = append(out.Nodes[e.To].After, e.From)
	}
	return out
}

func describeNode(s *graphir.Spec, index int, n *graphir.Node) Node {
	out := Node{Index: index, Type: n.Type.String(), After: []uint32{}}
	nodeTypes[n.Type](s, n, &out)
	return out
}

// WriteTable lists the nodes, one per line.
func (g *Graph) WriteTable(w io.Writer) error {
	t := printable.NewTable(w)
	t.Row("graph %d\t%s, batch %d, %d nodes, %d edges", g.Index, g.Label, g.Batch, len(g.Nodes), len(g.Edges))
	if err := t.Flush(); err != nil {
		return err
	}
	t = printable.NewTable(w)
	t.Row("NODE\tAFTER\tWHAT\tGRID\tBLOCK\tSHARED\tPARAMETERS")
	g.rows(t, "")
	return t.Flush()
}

func (g *Graph) rows(t printable.Table, indent string) {
	child := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		t.Row("%s%d\t%s\t%s\t%s\t%s\t%s\t%s", indent, n.Index, after(n.After), n.what(), dims(n.Grid), dims(n.Block), shared(n), n.parameters())
		if n.Type == graphir.NodeChild.String() {
			g.Children[child].rows(t, indent+strconv.Itoa(n.Index)+".")
			child++
		}
	}
}

func (n *Node) what() string {
	if n.Kernel != "" {
		return n.Kernel
	}
	return n.Type
}

func (n *Node) parameters() string {
	var parts []string
	for _, a := range n.Arguments {
		if a.Gap {
			parts = append(parts, "gap:"+a.Value)
		} else {
			parts = append(parts, a.Value)
		}
	}
	switch {
	case n.Source != "":
		parts = append(parts, n.Target+" <- "+n.Source)
	case n.Target != "":
		parts = append(parts, n.Target)
	}
	if n.Detail != "" {
		parts = append(parts, n.Detail)
	}
	return strings.Join(parts, " ")
}

func after(nodes []uint32) string {
	if len(nodes) == 0 {
		return "-"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(nodes), " ", ","), "[]")
}

// dims leaves out trailing ones: 132, 8×4, 1×1×2.
func dims(d []uint32) string {
	if len(d) != 3 {
		return ""
	}
	switch {
	case d[2] != 1:
		return fmt.Sprintf("%d×%d×%d", d[0], d[1], d[2])
	case d[1] != 1:
		return fmt.Sprintf("%d×%d", d[0], d[1])
	}
	return fmt.Sprint(d[0])
}

func shared(n *Node) string {
	if n.Kernel == "" {
		return ""
	}
	return fmt.Sprint(n.SharedBytes)
}

// some joins the first few names.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}
