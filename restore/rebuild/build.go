package rebuild

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/internal/panics"
	"medusa/restore/live"
	"medusa/restore/memory"
)

// builder turns graphs of the IR into programs of driver calls and runs them.
type builder struct {
	spec        *graphir.Spec
	memory      *memory.Map
	functions   []cuda.Function // by kernel index
	events      []uint64        // CUevent by event index
	context     cuda.Context
	collectives Collectives
	captured    map[hole]cuda.Graph // by collectives
	current     int                 // the graph that is being laid
	slots       arena               // handles, zero until the driver stores them
	*sheet                          // being written, or nil
}

// sheet holds the programs of some graphs, one after the other, and the targets of their calls' pointers. The driver copies all of it
// in the calls, so a sheet is used again for later graphs: it stays in the processor's cache.
type sheet struct {
	program  program
	arena    arena
	embedded []*uint64 // CUgraph slots of graphs that nodes embed a copy of
	graphs   []laid
	err      error // why the next graph could not be laid
}

func (s *sheet) reset() {
	s.program.reset()
	s.arena.reset()
	s.embedded, s.graphs, s.err = nil, s.graphs[:0], nil
}

// laid is one graph of a sheet.
type laid struct {
	graph    int  // in the Spec
	calls    int  // of the sheet when this graph was done
	last     bool // of its template
	template *template
	exec     *uint64
}

// mostCalls is how many calls of several graphs a sheet holds. Handing over a sheet costs two switches of threads.
const mostCalls = 1024

// template is one CUgraph that serves every graph of its shape, one after the other: the first member adds nodes and
// edges, the others only set parameters. Each member is instantiated on its own, since updating an executable graph
// keeps the attributes and the launch cost of the first.
type template struct {
	graph *uint64  // CUgraph slot
	nodes []uint64 // CUgraphNode slots
}

// build makes an executable graph of every graph in the groups, by index; members of a group have one shape. On an error everything that
// was made is destroyed. The driver takes one thread at a time through its graph calls, so those are made here, while another goroutine
// writes the programs of the next graphs.
func (b *builder) build(groups [][]int) (execs []cuda.GraphExec, err error) {
	graphs := slices.Sorted(slices.Values(slices.Concat(groups...)))
	defer func() {
		if forgotten := b.forgetCollectives(); forgotten != nil {
			err = errors.Join(err, forgotten)
		}
	}()
	graphs = slices.DeleteFunc(graphs, func(i int) bool { return !b.spec.HasCollectives(i) })
	if len(graphs) > 0 {
		if err := live.InTrigger(func() error { return b.captureCollectives(graphs) }); err != nil {
			return nil, err
		}
	}
	execs = make([]cuda.GraphExec, len(b.spec.Graphs))
	written, blank, stop := make(chan *sheet), make(chan *sheet, 2), make(chan struct{})
	var sheets [2]sheet
	for i := range sheets {
		blank <- &sheets[i]
	}
	go b.write(groups, written, blank, stop)
	for s := range written {
		if err != nil {
			continue // the writer is about to stop
		}
		if err = s.err; err == nil {
			err = s.play(b.spec)
		}
		if err = errors.Join(err, s.collect(execs, err != nil)); err != nil {
			close(stop)
			continue
		}
		blank <- s
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

// collect takes the executable graphs of a sheet that was played, and destroys the graphs that no later sheet uses: all, if none follows.
func (s *sheet) collect(execs []cuda.GraphExec, none bool) error {
	for i, g := range s.graphs {
		execs[g.graph] = cuda.GraphExec(*g.exec)
		if g.last || none && i == len(s.graphs)-1 {
			s.embedded = append(s.embedded, g.template.graph)
		}
	}
	return destroyGraphs(s.embedded)
}

// enter makes the engine's context current on the calling goroutine's thread, until release.
func (b *builder) enter() (release func(), err error) {
	runtime.LockOSThread()
	if err := b.context.SetCurrent(); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("use the engine's context on another thread: %w", err)
	}
	return func() {
		_ = cuda.Context(0).SetCurrent() // the thread goes back to Go's runtime
		runtime.UnlockOSThread()
	}, nil
}

// write writes the programs of all graphs, group by group. The first sheet holds one graph, so that the driver has something to do
// at once, and each later one twice as many calls as the one before it, up to mostCalls.
func (b *builder) write(groups [][]int, written chan<- *sheet, blank <-chan *sheet, stop <-chan struct{}) {
	defer close(written)
	// mutant: a context for tensor maps
	if len(b.spec.TensorMaps) > 0 { // encoding one needs it to be current
		release, err := b.enter()
		if err != nil {
			written <- &sheet{err: err}
			return
		}
		defer release()
	}
	cursor := b.spec.NewCursor()
	full := 0
	hand := func() bool {
		select {
		case written <- b.sheet:
			full = min(2*len(b.program.calls), mostCalls)
			b.sheet = nil
			return true
		case <-stop:
			return false
		}
	}
	for _, members := range groups {
		nodes := b.spec.Nodes(members[0])
		slots, err := place[uint64](&b.slots, 1+nodes+len(members))
		t := &template{graph: new(uint64)}
		if err == nil {
			t = &template{graph: &slots[0], nodes: slots[1 : 1+nodes]}
		}
		for i, m := range members {
			if b.sheet == nil {
				select {
				case b.sheet = <-blank:
				case <-stop:
					return
				}
				b.sheet.reset()
				b.program.reserve(mostCalls + nodes)
			}
			exec := new(uint64)
			if err == nil {
				exec = &slots[1+nodes+i]
				// mutant: panics of our own goroutines
				err = panics.Catch(func() error { // only this goroutine can catch its panic
					g, err := cursor.Graph(m)
					if err != nil {
						return err
					}
					b.current = m
					return b.lay(t, g, i == 0, exec)
				})
			}
			if err != nil {
				b.sheet.err = fmt.Errorf("build graph %s: %w", b.spec.Graphs[m].Label, err)
			}
			b.graphs = append(b.graphs, laid{m, len(b.program.calls), i == len(members)-1, t, exec})
			if err != nil {
				hand()
				return
			}
			if len(b.program.calls) >= full && !hand() {
				return
			}
		}
	}
	if b.sheet != nil {
		hand()
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
	p.reserve(len(g.Nodes) + 4)
	if err := b.layGraph(t, g, first); err != nil {
		return err
	}
	p.add(cuda.EntryGraphInstantiateWithFlags, noNode, ptr(exec), slot(t.graph), val(g.InstantiateFlags))
	p.add(cuda.EntryGraphUpload, noNode, slot(exec), val(0))
	return nil
}

// layGraph writes the part of the program that makes the graph as recorded.
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
