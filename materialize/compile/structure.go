package compile

import (
	"cmp"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// The run check-native captures its graphs natively, in a third process with addresses of its own, and is recorded. Each of its nodes must equal the
// artifact's node as resolved there: the same kernel, and the same bytes once each pointer is resolved with that process's addresses. This
// comparison needs no data: it also covers parameters that no replay of a check depends on.
//
// Bytes of a struct may still differ, pointers included: bytes that no code writes can be alike in two recordings by chance. They
// become presumed padding (padding.go), which check-restored poisons.

// StructureError is a node that a third process captured differently from both recordings.
type StructureError struct {
	Graph     string
	Node      int // -1: the graph as a whole
	Kind      string
	What      string
	Got, Want string
	Reason    string // why that matters; empty: the comparison alone decides
}

func (e *StructureError) Error() string {
	where := fmt.Sprintf("node %d (%s): ", e.Node, e.Kind)
	if e.Node < 0 {
		where = ""
	}
	text := fmt.Sprintf("verify graph %q: %s%s is %s in a native start, %s by the artifact", e.Graph, where, e.What, e.Got, e.Want)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// relocated is an artifact, resolved in the process of a recording.
type relocated struct {
	spec    *graphir.Spec
	run     *run
	tensors []uint64 // address by tensor; 0: not marked
	globals []uint64 // address by variable; 0: not there
	modules map[uint32]string
	pads    map[padPlace][]Padding
	settled bool
	host    map[uint32][]*graphir.Content
	lo, hi  uint64   // the run's device memory
	found   Paddings // bytes of structs that differ
}

type padPlace struct {
	embedded    bool
	graph, node int
}

// CompareNodes compares the graphs of a recording that had no part in compiling them with those of the spec, except for the
// presumed padding. It returns the bytes that have to be presumed padding as well. settled says that the artifact has zeros in
// its padding, and that the places of the padding are no longer known.
func CompareNodes(spec *graphir.Spec, r *recording.Recording, pads Paddings, settled bool) (Paddings, error) {
	numbers, err := alignWithSpec(spec, r)
	if err != nil {
		return nil, err
	}
	run := newRun(r, numbers, numberVariables(r))
	x := &relocated{spec: spec, run: run, settled: settled, pads: map[padPlace][]Padding{}, host: map[uint32][]*graphir.Content{}}
	for _, p := range pads {
		if p.Spec == spec {
			at := padPlace{p.embedded, p.graph, p.node}
			x.pads[at] = append(x.pads[at], p)
		}
	}
	for i := range spec.Contents {
		if c := &spec.Contents[i]; c.Space == graphir.SpaceHost {
			x.host[c.Alloc] = append(x.host[c.Alloc], c)
		}
	}
	x.place()
	native := run.instantiated()
	if len(native) != len(spec.Graphs) {
		return nil, fmt.Errorf("verify: %d graphs in a native start, %d in the artifact", len(native), len(spec.Graphs))
	}
	w, err := run.Walk()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	err = spec.EachGraph(func(i int, g *graphir.Graph) error {
		body, err := w.To(native[i])
		if err != nil {
			return err
		}
		label := native[i].Label
		if label == "" {
			label = g.Label // the compiler's
		}
		if label != g.Label || native[i].Batch != g.Batch || native[i].InstantiateFlags != g.InstantiateFlags {
			return &StructureError{Graph: g.Label, Node: -1, What: "label, batch and instantiate flags",
				Got: fmt.Sprintf("%q, %d, %#x", label, native[i].Batch, native[i].InstantiateFlags), Want: fmt.Sprintf("%q, %d, %#x", g.Label, g.Batch, g.InstantiateFlags)}
		}
		return x.graph(g, g.Label, body, padPlace{graph: i})
	})
	return x.found, err
}

// alignWithSpec finds the numbers that a recording's allocations have in the spec. Page-locked memory without references may come in any order: it
// gets numbers behind the spec's.
func alignWithSpec(spec *graphir.Spec, r *recording.Recording) (numbering, error) {
	if spec.Threaded() {
		index, err := graphir.MatchThreads(spec.AllSteps(), threadSteps(r), nil)
		if err != nil {
			return numbering{}, fmt.Errorf("verify: compare allocation sequences: %w", err)
		}
		return numbering{index, len(spec.Allocations)}, nil
	}
	want := graphir.OrderFrees(spec.Repeating())
	n := numberedBySpec(spec, want, r)
	got, of := n.sequence(r), n.own(r)
	for i := range max(len(want), len(got)) {
		is, should := describeStep(got, i, of), "nothing"
		if i < len(want) {
			s := want[i]
			a := &spec.Allocations[s.Alloc]
			if should = fmt.Sprintf("alloc#%d of kind %d, %d bytes", s.Alloc, a.Kind, a.Size); s.Free {
				should = fmt.Sprintf("free of alloc#%d", s.Alloc)
			}
		}
		if is != should {
			return numbering{}, fmt.Errorf("verify: compare allocation sequences: step %d: %s in a native start, %s by the artifact", i, is, should)
		}
	}
	return n, nil
}

// numberedBySpec gives each allocation that has to come in order the number of the one at its place in the sequence.
func numberedBySpec(spec *graphir.Spec, sequence []graphir.Step, r *recording.Recording) numbering {
	var made []uint32
	for _, s := range sequence {
		if !s.Free {
			made = append(made, s.Alloc)
		}
	}
	repeats, n, behind := spec.Repeats(), numbering{allocationIndex{}, len(spec.Allocations)}, uint32(len(spec.Allocations))
	for i := range r.Allocs {
		if a := &r.Allocs[i]; !repeats(a.Kind, a.Size) {
			n.index[uint32(i)] = behind
			behind++
			continue
		}
		if len(made) == 0 { // one more than the artifact has: the comparison says so
			made = []uint32{behind}
			n.kept = int(behind) + 1
			behind++
		}
		n.index[uint32(i)], made = made[0], made[1:]
	}
	return n
}

// place finds device memory, tensors and variables in the run.
func (x *relocated) place() {
	x.lo = ^uint64(0)
	for i := range x.run.allocs {
		// Numbers that only the spec has are of no memory here.
		if a := &x.run.allocs[i]; a.Size > 0 && a.Kind != graphir.AllocPinned && a.Kind != graphir.AllocRegistered {
			x.lo, x.hi = min(x.lo, a.Addr), max(x.hi, a.Addr+a.Size)
		}
	}
	marked := map[string]uint64{}
	for _, t := range x.run.Tensors {
		marked[t.Name] = t.Addr
	}
	for i := range x.spec.Tensors {
		x.tensors = append(x.tensors, marked[x.spec.Tensors[i].Name])
	}
	x.modules = map[uint32]string{}
	for id, m := range x.run.Modules {
		x.modules[id] = moduleIdentity(graphir.ModuleKind(m.Kind), m.SHA256, m.BuildID, m.DSOOffset, m.Names)
	}
	type variable struct{ module, name string }
	known := map[variable]uint64{}
	for i := range x.run.variables {
		g := &x.run.variables[i]
		known[variable{x.modules[g.Module], g.Name}] = g.Addr // the last load counts
	}
	for _, g := range x.spec.Globals {
		x.globals = append(x.globals, known[variable{x.specModule(g.Module), g.Name}])
	}
}

func (x *relocated) specModule(index uint32) string {
	m := &x.spec.Modules[index]
	return moduleIdentity(m.Kind, m.ImageSHA256[:], m.BuildID, m.DSOOffset, m.Functions)
}

// moduleIdentity tells modules apart in a recording and in a spec alike: a recording may lack the hash of an image whose place is
// known.
func moduleIdentity(kind graphir.ModuleKind, sum []byte, buildID string, offset uint64, names []string) string {
	switch {
	case kind == graphir.ModuleHidden:
		names = slices.Clone(names)
		slices.Sort(names)
		return fmt.Sprintf("functions %q", names)
	case buildID != "":
		return fmt.Sprintf("%s+%#x", buildID, offset)
	}
	return fmt.Sprintf("image %x", sum)
}

// address resolves a pointer in the run.
func (x *relocated) address(p graphir.Pointer) uint64 {
	base := uint64(0)
	switch p.Space {
	case graphir.SpaceAlloc:
		if int(p.Index) < len(x.run.allocs) {
			base = x.run.allocs[p.Index].Addr
		}
	case graphir.SpaceGlobal:
		base = x.globals[p.Index]
	case graphir.SpaceTensor:
		base = x.tensors[p.Index]
	}
	if base == 0 {
		return 0
	}
	return base + p.Offset
}

// graph compares one graph, in the order in which both drivers listed its nodes and edges. No driver promises an order: if the
// orders differ, nodes are paired by their contents and by the nodes before them.
func (x *relocated) graph(g *graphir.Graph, label string, native *recording.Body, at padPlace) error {
	if len(native.NodeRecords) != len(g.Nodes) {
		return &StructureError{Graph: label, Node: -1, What: "the number of nodes", Got: fmt.Sprint(len(native.NodeRecords)), Want: fmt.Sprint(len(g.Nodes))}
	}
	edges, err := edgeIndices(native)
	if err != nil {
		return err
	}
	listed := make([]int, len(g.Nodes))
	for i := range listed {
		listed[i] = i
	}
	before := x.found
	differs := x.inOrder(g, label, native, at, listed, edges)
	asListed := x.found
	if differs == nil && len(asListed) == len(before) {
		return nil
	}
	x.found = before
	if order := x.pair(g, label, native, at, edges); order != nil {
		paired := x.inOrder(g, label, native, at, order, edges)
		if paired == nil && (differs != nil || len(x.found) < len(asListed)) {
			return nil
		}
	}
	x.found = asListed
	return differs
}

// inOrder compares each node with the one that order names, and the edges between them.
func (x *relocated) inOrder(g *graphir.Graph, label string, native *recording.Body, at padPlace, order []int, edges []graphir.Edge) error {
	place := make([]uint32, len(order))
	for i, j := range order {
		place[j] = uint32(i)
		at.node = i
		if err := x.node(&g.Nodes[i], label, native, j, at); err != nil {
			return err
		}
	}
	got := make([]graphir.Edge, len(edges))
	for i, e := range edges {
		got[i] = e
		got[i].From, got[i].To = place[e.From], place[e.To]
	}
	want := slices.Clone(g.Edges)
	slices.SortFunc(got, byEnds)
	slices.SortFunc(want, byEnds)
	for i := range max(len(got), len(want)) {
		var a, b any = "missing", "missing"
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			return &StructureError{Graph: label, Node: -1, What: fmt.Sprintf("edge %d", i), Got: fmt.Sprint(a), Want: fmt.Sprint(b)}
		}
	}
	return nil
}

func byEnds(a, b graphir.Edge) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.FromPort, b.FromPort),
		cmp.Compare(a.ToPort, b.ToPort), cmp.Compare(a.Type, b.Type))
}

// compared is a node of a third process beside the artifact's.
type compared struct {
	x     *relocated
	graph *recording.Body // that the node is in
	label string          // of that graph
	at    padPlace
	want  *graphir.Node
	got   graphir.NodeType
}

// differ is the error of two values that are not the same.
func (c *compared) differ(what string, got, want any) error {
	return &StructureError{Graph: c.label, Node: c.at.node, Kind: nodeTypeName(uint32(c.got)), What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
}

// node compares one node with the index'th that was listed.
func (x *relocated) node(want *graphir.Node, label string, native *recording.Body, index int, at padPlace) error {
	rec := native.NodeRecords[index]
	row := &nodeTypes[rec.RecordType()]
	c := &compared{x, native, label, at, want, row.becomes(rec)}
	if c.got != want.Type {
		return c.differ("its type", nodeTypeName(uint32(c.got)), nodeTypeName(uint32(want.Type)))
	}
	return row.compare(c, rec)
}

func address(v uint64) string { return fmt.Sprintf("%#x", v) }
