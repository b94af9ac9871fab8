package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/inspect"
)

var update = flag.Bool("update", false, "accept the pictures as they are")

func kernel(i int, name string, after ...uint32) inspect.Node {
	return inspect.Node{Index: i, Type: "kernel", Kernel: name, Grid: []uint32{uint32(4 + i%3), 1, 1}, Block: []uint32{128, 1, 1},
		Arguments: []inspect.Argument{{Offset: 0, Size: 8, Value: fmt.Sprintf("alloc#%d+%d", i%5, 64*i)}}, After: after}
}

// chain resembles a decode step: layers of the same kernels, one after another.
func chain(n int) *inspect.Graph {
	names := []string{"_Z8rms_normIfEvPKT_S2_PS0_if", "_ZN3sys4gemmIfLi64EEvPKT_", "rope", "paged_attention<64>", "_Z8silu_mulv"}
	g := &inspect.Graph{Label: fmt.Sprintf("decode of %d", n), Batch: 8}
	for i := range n {
		node := kernel(i, names[i%len(names)])
		if i > 0 {
			node.After = []uint32{uint32(i - 1)}
			g.Edges = append(g.Edges, inspect.Edge{From: uint32(i - 1), To: uint32(i)})
		}
		g.Nodes = append(g.Nodes, node)
	}
	return g
}

// fork has two streams of different lengths, an edge that bypasses both, and a node of every other type.
func fork() *inspect.Graph {
	g := &inspect.Graph{Label: `fork "and" <join>`, Batch: 1, Nodes: []inspect.Node{
		kernel(0, "start"), kernel(1, "left"), kernel(2, "right"), kernel(3, "right"), kernel(4, "join"),
		{Index: 5, Type: "memset", Target: "alloc#3+0", Detail: "value=0x0"},
		{Index: 6, Type: "memcpy", Source: "alloc#1+0", Target: "alloc#2+64"},
		{Index: 7, Type: "empty"}, {Index: 8, Type: "event_record", Target: "event#0"},
	}}
	for _, e := range [][2]uint32{{0, 1}, {0, 2}, {2, 3}, {1, 4}, {3, 4}, {0, 4}, {5, 6}, {6, 4}, {4, 7}, {4, 8}} {
		g.Edges = append(g.Edges, inspect.Edge{From: e[0], To: e[1]})
	}
	g.Edges[9].Type = 1
	return g
}

func TestPicturesAreAsBefore(t *testing.T) {
	for name, g := range map[string]*inspect.Graph{"chain": chain(36), "fork": fork(), "empty": {Label: "nothing", Edges: []inspect.Edge{}}} {
		for ext, write := range map[string]func(io.Writer, *inspect.Graph) error{"svg": SVG, "dot": DOT} {
			var got bytes.Buffer
			if err := write(&got, g); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+"."+ext)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s changed (look at it in a browser; -update accepts)", path)
			}
		}
	}
}

// A picture is readable if no boxes overlap, every edge leads from a box's bottom to a box's top, everything is inside of the
// picture, and the picture is neither very narrow nor very wide.
func TestLayoutIsReadable(t *testing.T) {
	wide := &inspect.Graph{Nodes: make([]inspect.Node, 40)}
	for i := uint32(1); i < 40; i++ {
		wide.Edges = append(wide.Edges, inspect.Edge{From: (i - 1) / 3, To: i})
	}
	for name, g := range map[string]*inspect.Graph{"chain of 360": chain(360), "chain of 2": chain(2), "fork": fork(), "tree": wide} {
		edges := make([][2]int, len(g.Edges))
		for i, e := range g.Edges {
			edges[i] = [2]int{int(e.From), int(e.To)}
		}
		l := arrange(len(g.Nodes), edges)
		for i, a := range l.boxes {
			if a.x-boxWidth/2 < 0 || a.x+boxWidth/2 > l.width || a.y-boxHeight/2 < 0 || a.y+boxHeight/2 > l.height {
				t.Errorf("%s: box %d at %v leaves the picture of %v × %v", name, i, a, l.width, l.height)
			}
			for j := range i {
				if b := l.boxes[j]; math.Abs(a.x-b.x) < boxWidth && math.Abs(a.y-b.y) < boxHeight {
					t.Errorf("%s: boxes %d and %d overlap", name, i, j)
				}
			}
		}
		for i, line := range l.edges {
			from, to := l.boxes[edges[i][0]], l.boxes[edges[i][1]]
			if line[0] != (point{from.x, from.y + boxHeight/2}) || line[len(line)-1] != (point{to.x, to.y - boxHeight/2}) {
				t.Errorf("%s: edge %d runs %v", name, i, line)
			}
		}
		if ratio := l.width / l.height; strings.HasSuffix(name, "360") && (ratio < 0.4 || ratio > 4) {
			t.Errorf("%s: %v × %v", name, l.width, l.height)
		}
	}
}

func TestOrderUntanglesEdges(t *testing.T) {
	// 0 and 1 lead to 3 and 2: in the order of their numbers, the edges cross.
	l := newLayered(4, [][2]int{{0, 3}, {1, 2}})
	l.order()
	upper, lower := l.layers[0], l.layers[1]
	if (slices.Index(upper, 0) < slices.Index(upper, 1)) != (slices.Index(lower, 3) < slices.Index(lower, 2)) {
		t.Errorf("layers %v: the edges cross", l.layers)
	}
}

func TestNearestKeepsGapsAtLeastCost(t *testing.T) {
	got := nearest([]float64{0, 0, 10}, []float64{0, 4, 4})
	if want := []float64{-2, 2, 10}; !slices.Equal(got, want) {
		t.Errorf("nearest gives %v, want %v", got, want)
	}
}

func TestSVGIsXMLWithoutReferences(t *testing.T) {
	var out bytes.Buffer
	if err := SVG(&out, fork()); err != nil {
		t.Fatal(err)
	}
	boxes := 0
	for d := xml.NewDecoder(&out); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			if a.Name.Local == "class" && a.Value == "b" {
				boxes++
			}
			if a.Name.Local == "href" || strings.Contains(a.Value, "//") && a.Name.Local != "xmlns" {
				t.Errorf("<%s %s=%q> leads outside", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	if boxes != 9 {
		t.Errorf("%d boxes for 9 nodes", boxes)
	}
}

func TestShortName(t *testing.T) {
	for mangled, want := range map[string]string{
		"_Z8rms_normIfEvPKT_S2_PS0_if":       "rms_norm",
		"_ZN3sys4gemmIfLi64EEvPKT_":          "gemm",
		"_ZN7cutlass6KernelI4FooE3runEv":     "Kernel",
		"_ZN2at6native12_GLOBAL__N_14fillEv": "fill",
		"ampere_sgemm_64x64_nt":              "ampere_sgemm_64x64_nt",
		"_Z":                                 "_Z",
		"_Z99short":                          "_Z99short",
		"_ZL5scalePf":                        "scale",
	} {
		if got := ShortName(mangled); got != want {
			t.Errorf("ShortName(%q) = %q, want %q", mangled, got, want)
		}
	}
	if got := fit("abcdefghij", 6); got != "abc…ij" {
		t.Errorf("fit gives %q", got)
	}
}
