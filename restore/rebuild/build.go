package rebuild

import (
	"errors"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/internal/panics"
	"medusa/restore/memory"
)

// builder turns graphs of the IR into programs of driver calls and runs them.
type builder struct {
	spec      *graphir.Spec
	memory    *memory.Map
	functions []cuda.Function // by kernel index
	events    []uint64        // CUevent by event index
	context   cuda.Context
	slots     arena // handles, zero until the driver stores them
	*sheet          // being written
}

// sheet holds the program of one graph and the targets of its calls' pointers. The driver copies all of it in the call, so a sheet is
// used again for a later graph: it stays in the processor's cache.
type sheet struct {
	program  program
	arena    arena
	embedded []*uint64 // CUgraph slots of graphs that nodes embed a copy of
}

func (s *sheet) reset() {
	s.program.reset()
	s.arena.reset()
	s.embedded = nil
}

// template is one CUgraph that serves every graph of its shape, one after the other: the first member adds nodes and
// edges, the others only set parameters. Each member is instantiated on its own, since updating an executable graph
// keeps the attributes and the launch cost of the first.
type template struct {
	graph *uint64  // CUgraph slot
	nodes []uint64 // CUgraphNode slots
}

// page is a sheet on its way from the goroutine that writes programs to the one that plays them.
type page struct {
	*sheet
	graph    int
	last     bool // of its template
	template *template
	exec     *uint64
	err      error
}

// build makes an executable graph of every graph in the groups, by index; members of a group have one shape. On an error everything that was made
// is destroyed. The driver takes one thread at a time through its graph calls, so those are made here, while the program
// of the next graph is written beside.
func (b *builder) build(groups [][]int) ([]cuda.GraphExec, error) {
	execs := make([]cuda.GraphExec, len(b.spec.Graphs))
	pages, blank, stop := make(chan page), make(chan *sheet, 2), make(chan struct{})
	var sheets [2]sheet
	for i := range sheets {
		blank <- &sheets[i]
	}
	go b.write(groups, pages, blank, stop)
	var err error
	for p := range pages {
		if err != nil {
			continue // the writer is about to stop
		}
		if err = p.err; err == nil {
			err = p.program.play(b.spec.Graphs[p.graph].Label)
		}
		execs[p.graph] = cuda.GraphExec(*p.exec)
		if p.last || err != nil {
			err = errors.Join(err, destroyGraphs(append(p.embedded, p.template.graph)))
		}
		if err != nil {
			close(stop)
			continue
		}
		blank <- p.sheet
	}
	for i := range sheets {
		sheets[i].arena.release()
	}
	b.slots.release()
	if err != nil {
		return nil, errors.Join(err, destroyExecs(execs))
	}
	return execs, nil
}

// write writes the programs of all graphs, group by group.
func (b *builder) write(groups [][]int, pages chan<- page, blank <-chan *sheet, stop <-chan struct{}) {
	defer close(pages)
	cursor := b.spec.NewCursor()
	for _, members := range groups {
		nodes := b.spec.Nodes(members[0])
		slots, err := place[uint64](&b.slots, 1+nodes+len(members))
		var t *template
		if err == nil {
			t = &template{graph: &slots[0], nodes: slots[1 : 1+nodes]}
		} else {
			t, slots = &template{graph: new(uint64)}, make([]uint64, 1+nodes+len(members))
		}
		for i, m := range members {
			select {
			case b.sheet = <-blank:
			case <-stop:
				return
			}
			b.sheet.reset()
			exec := &slots[1+nodes+i]
			if err == nil {
				// mutant: panics of our own goroutines
				err = panics.Catch(func() error { // nobody else could catch a panic of this goroutine
					g, err := cursor.Graph(m)
					if err != nil {
						return err
					}
					return b.lay(t, g, i == 0, exec)
				})
			}
			if err != nil {
				err = fmt.Errorf("build graph %s: %w", b.spec.Graphs[m].Label, err)
			}
			select {
			case pages <- page{b.sheet, m, i == len(members)-1, t, exec, err}:
			case <-stop:
				return
			}
			if err != nil {
				return
			}
		}
	}
}

// destroyGraphs destroys the graphs in the slots that hold one.
func destroyGraphs(slots []*uint64) error {
	var err error
	for _, graph := range slots {
		if *graph != 0 {
			err = errors.Join(err, cuda.Graph(*graph).Destroy())
		}
	}
	return err
}

// destroyExecs destroys the executable graphs made so far, last first.
func destroyExecs(execs []cuda.GraphExec) error {
	var first error
	for i := len(execs) - 1; i >= 0; i-- {
		if execs[i] == 0 {
			continue
		}
		if err := execs[i].Destroy(); err != nil && first == nil {
			first = fmt.Errorf("destroy executable graph %d: %w", i, err)
		}
		execs[i] = 0
	}
	return first
}

// lay writes the program of one graph: nodes (or, for a later member, their parameters), edges, instantiate, upload.
func (b *builder) lay(t *template, g *graphir.Graph, first bool, exec *uint64) error {
	p := &b.program
	p.calls, p.steps = slices.Grow(p.calls, len(g.Nodes)+4), slices.Grow(p.steps, len(g.Nodes)+4)
	if err := b.layGraph(t, g, first); err != nil {
		return err
	}
	p.add(cuda.EntryGraphInstantiateWithFlags, noNode, ptr(exec), slot(t.graph), val(g.InstantiateFlags))
	p.add(cuda.EntryGraphUpload, noNode, slot(exec), val(0))
	return nil
}

// layGraph writes the part of the program that leaves the graph as recorded.
func (b *builder) layGraph(t *template, g *graphir.Graph, first bool) error {
	if first {
		b.program.add(cuda.EntryGraphCreate, noNode, ptr(t.graph), val(0))
	}
	for i := range g.Nodes {
		if err := b.layNode(t, i, &g.Nodes[i], first); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	if !first {
		return nil
	}
	return b.layEdges(t, g.Edges)
}

// layNode writes the calls that add a node, or set its parameters in a later member of the template.
func (b *builder) layNode(t *template, i int, n *graphir.Node, first bool) error {
	if int(n.Type) >= len(nodeTypes) || nodeTypes[n.Type] == nil {
		return fmt.Errorf("node type %d cannot be built", n.Type)
	}
	return nodeTypes[n.Type](b, t, i, n, first)
}

// layEdges adds one call per run of edges. The node slots are the call's arrays themselves: by the time it is made, the
// driver has stored the handles there.
func (b *builder) layEdges(t *template, edges []graphir.Edge) error {
	// mutant: edges of a fork and join
	for _, run := range edgeRuns(edges) {
		data, err := place[cuda.EdgeData](&b.arena, len(run))
		if err != nil {
			return err
		}
		for i, e := range run {
			// mutant: data of an edge
			data[i] = cuda.EdgeData{FromPort: e.FromPort, ToPort: e.ToPort, Type: e.Type}
		}
		b.program.add(cuda.EntryGraphAddDependencies, noNode, slot(t.graph), ptr(&t.nodes[run[0].From]), ptr(&t.nodes[run[0].To]), ptr(&data[0]), val(uint64(len(run))))
	}
	return nil
}
