package graphir_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/graphir/graphpb"
	"medusa/test/randspec"
	"medusa/test/testmem"
)

// third is second with enough nodes for row groups. The nodes repeat to keep its encoding, testdata/v3-small-groups.graph, short. Graphs of
// two templates alternate.
func third() *graphir.Spec {
	s := second()
	for i := range 30 {
		g := graphir.Graph{Label: fmt.Sprintf("many-%d", i), Batch: int64(100 + i)}
		for n := range 5000 + i%2 {
			m := &graphir.MemsetNode{Dst: graphir.Pointer{Index: 2}, ElemSize: 1, Width: 4, Height: 1}
			if n == 0 {
				m.Value = uint32(i)
			}
			g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeMemset, Params: m})
		}
		s.Graphs = append(s.Graphs, g)
	}
	return s
}

func TestGoldenVersion3(t *testing.T) {
	want := third()
	encoded, err := graphir.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	v3 := golden(t, "v3-small-groups.graph", encoded, false)
	if !bytes.Equal(encoded, v3) {
		t.Errorf("encoding changed: %d bytes instead of %d", len(encoded), len(v3))
	}
	for name, data := range map[string][]byte{
		"v3-small-groups.graph": v3,
		"v3.graph":              golden(t, "v3.graph", nil, false), // a writer may fill groups up to their limit
	} {
		spec, err := graphir.Decode(data)
		if err != nil {
			t.Fatalf("%s no longer loads: %v", name, err)
		}
		if spec.Rows == nil || len(spec.Rows.Digests()) < 2 {
			t.Fatalf("%s: no row groups", name)
		}
		if err := spec.Validate(); err != nil {
			t.Fatal(name, err)
		}
		if !graphir.Equal(spec, want) || dump(t, spec) != dump(t, want) {
			t.Error(name, "loads as something else")
		}
		if again, err := graphir.Encode(spec); err != nil || !bytes.Equal(again, v3) {
			t.Errorf("%s encoded again: %d bytes instead of %d, %v", name, len(again), len(v3), err)
		}
	}
}

// Facts about graphs that need no row group agree with the nodes, and a cursor reads graphs in any order.
func TestRowsAgreeWithNodes(t *testing.T) {
	want := randspec.Model(80, 90)
	for i := range want.Graphs {
		if i%3 == 0 { // another template
			g := &want.Graphs[i]
			g.Nodes, g.Edges = g.Nodes[:len(g.Nodes)-1], g.Edges[:len(g.Edges)-1]
		}
	}
	got := reread(t, want)
	if got.Rows == nil || !graphir.Equal(want, got) || graphir.Equal(got, randspec.Model(80, 90)) {
		t.Fatal("another spec")
	}
	if fmt.Sprint(want.Referred()) != fmt.Sprint(got.Referred()) || fmt.Sprint(want.UsedKernels()) != fmt.Sprint(got.UsedKernels()) {
		t.Error("other objects or kernels")
	}
	c := got.NewCursor()
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(want.Graphs))
	for i := range want.Graphs { // and backwards, within each group
		order = append(order, len(want.Graphs)-1-i)
	}
	for _, i := range order {
		g, err := c.Graph(i)
		if err != nil {
			t.Fatal(err)
		}
		a, b := &graphir.Spec{Graphs: []graphir.Graph{*g}}, &graphir.Spec{Graphs: want.Graphs[i : i+1]}
		if !graphir.Equal(a, b) || got.Nodes(i) != want.Nodes(i) {
			t.Fatalf("graph %d differs", i)
		}
		if same := got.Rows.Template(i) == got.Rows.Template(0); i <= 50 && same != (i%3 == 0) { // kernels differ up to graph 50
			t.Errorf("graph %d: template %d", i, got.Rows.Template(i))
		}
	}
}

// Foundry's set of 256 graphs with 1,000 nodes: reading all of it stays within a reader's memory limit, and little memory stays
// in use.
func TestLargeSetTakesLittleMemory(t *testing.T) {
	spec := randspec.Model(256, 91)
	data, err := graphir.Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	nodes := 0
	testmem.Bounded(t, len(data), func() {
		got, err := graphir.Decode(data)
		if err == nil {
			err = got.EachGraph(func(_ int, g *graphir.Graph) error {
				nodes += len(g.Nodes)
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if nodes < 256_000 {
		t.Errorf("%d nodes", nodes)
	}
}

func TestDamagedRows(t *testing.T) {
	for want, spoil := range map[string]func(w *wire){
		"decode groups: columns of unequal length":          func(w *wire) { w.GroupSize = w.GroupSize[1:] },
		"decode groups: they have":                          func(w *wire) { w.GroupGraphs[0]-- },
		"decode groups[0]: 0 of 33 graphs":                  func(w *wire) { w.GroupGraphs[0] = 0 },
		"decode groups[0]: 34 of 33 graphs":                 func(w *wire) { w.GroupGraphs[0] = 34 },
		"decode groups[0]: 1 of 33 graphs in 4194305 bytes": func(w *wire) { w.GroupGraphs[0], w.GroupSize[0], w.Trusting = 1, 4<<20+1, true },
		"decode groups: group 0 takes more than 16777216 bytes": func(w *wire) {
			w.GroupGraphs, w.GroupSize, w.GroupSha256 = []uint32{32, 1}, w.GroupSize[:2], w.GroupSha256[:64]
		},
		"decode groups[0]: it does not match its digest":               func(w *wire) { w.GroupSha256[31]++; w.Trusting = true },
		"decode groups[1]: it does not match its digest":               func(w *wire) { w.GroupSize[1]++; w.Trusting = true },
		"decode groups[0]: columns of unequal length":                  func(w *wire) { w.Rows[0] = w.Rows[0][1:] },
		"decode groups[1]: columns of unequal length":                  func(w *wire) { w.Rows[1] = append(w.Rows[1], w.Rows[1][0]) },
		"decode graphs[4]: base is not the graph of its template":      func(w *wire) { w.Rows[0][4].Base++ },
		"decode graphs[3]: memset: change at entry":                    func(w *wire) { w.Rows[0][3].Memset.Gap[0] = 1 << 30 },
		"decode graphs[4]: template 99 of 6":                           func(w *wire) { w.GraphSection.Graphs = nil; w.Graphs[4].Template = 99 },
		"decode graphs[0]: node 3: alloc#2+0 is not among the objects": func(w *wire) { w.Referred[1]++; w.Referred = w.Referred[:2] },
		"decode spec: check graph spec: referred[1]: object 77 of":     func(w *wire) { w.Referred[1] = 77 - w.Referred[0] },
		"decode spec: check graph spec: graphs[4].nodes[0].dst":        func(w *wire) { w.Rows[0][4].Memset = &graphpb.Changes{Gap: []uint32{0}, Delta: []int64{50}} },
		"decode graphs[5]: only 1 row groups are present":              func(w *wire) { w.Rows = w.Rows[:1] },
	} {
		w := open(t, third())
		spoil(w)
		s, err := graphir.Decode(w.encode(t))
		if err == nil {
			err = s.Validate()
		}
		if !errors.Is(err, graphir.ErrCorrupt) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Neither many graphs that name a large template nor many groups turn a few bytes into much memory.
func TestRowsBoundMemory(t *testing.T) {
	many := open(t, third())
	large := open(t, third())
	for range 100_000 {
		many.Graphs = append(many.Graphs, &graphpb.Graph{})
	}
	for range 300 {
		large.Graphs = append(large.Graphs, large.Graphs[5])
		large.Rows = append(large.Rows, []*graphpb.Graph{{}})
		large.GroupGraphs, large.GroupSize = append(large.GroupGraphs, 1), append(large.GroupSize, 0)
		large.GroupSha256 = append(large.GroupSha256, make([]byte, 32)...)
	}
	for name, w := range map[string]*wire{"many graphs": many, "large template": large} {
		data := w.encode(t)
		runtime.GC()
		testmem.Bounded(t, len(data), func() {
			s, err := graphir.Decode(data)
			if err == nil {
				err = s.Validate()
			}
			if !errors.Is(err, graphir.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// The writer refuses a graph that is too large for a group.
func TestGraphTooLarge(t *testing.T) {
	s := handmade()
	g := &s.Graphs[0]
	for len(g.Nodes) < 400_000 {
		g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeEmpty})
	}
	for i := range uint32(300_000) {
		g.Edges = append(g.Edges, graphir.Edge{From: i % 100_000, To: 100_000 + i%99_999})
	}
	if _, err := graphir.Encode(s); err == nil || !strings.Contains(err.Error(), "bytes decoded (at most 16777216)") {
		t.Errorf("got %v", err)
	}
}

// The encoder begins the next group at a size below that of the largest allowed graph. So the first graph of a
// group may be larger than that size.
func TestFirstGraphLargerThanAGroup(t *testing.T) {
	for _, small := range []int{0, 1, 3} {
		s := second()
		s.Graphs = nil
		for i, nodes := range append(slices.Repeat([]int{1}, small), 30000, 30000, 1) {
			g := graphir.Graph{Label: fmt.Sprint("large-", i), Batch: int64(i + 1)}
			for range nodes {
				g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeMemset,
					Params: &graphir.MemsetNode{Dst: graphir.Pointer{Index: 2}, ElemSize: 1, Width: 4, Height: 1}})
			}
			s.Graphs = append(s.Graphs, g)
		}
		encoded, err := graphir.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := graphir.Decode(encoded); err != nil || got.Rows == nil || !graphir.Equal(got, s) {
			t.Errorf("after %d small graphs: %v, in row groups: %v", small, err, got != nil && got.Rows != nil)
		}
	}
}
