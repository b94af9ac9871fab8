package programs

import (
	"fmt"
	"math/rand/v2"
)

// generator draws one plan.
type generator struct {
	*rand.Rand
	p       *Plan
	data    []int // buffers that kernels compute on
	staged  int   // the buffer that arrives behind an event, or -1
	fetched int   // the buffer that is read behind an event, or -1
}

// New returns the program of a seed.
func New(seed uint64) *Plan {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6d6564757361)), p: &Plan{Seed: seed, Features: map[string]bool{}}}
	g.buffers()
	g.modules()
	g.tables()
	g.p.Events = 1 + g.IntN(4)
	g.graphs()
	if g.IntN(16) == 0 {
		g.refuse()
	}
	return g.p
}

func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) feature(format string, args ...any) {
	g.p.Features[fmt.Sprintf(format, args...)] = true
}

func (g *generator) add(b Buffer) int {
	g.p.Buffers = append(g.p.Buffers, b)
	return len(g.p.Buffers) - 1
}

const bytes = 4 * Words

// buffers draws allocations of both phases. Those that are freed come and go among the others, so that addresses are
// handed out again; a free in the capture phase is the paper's Figure 6.
func (g *generator) buffers() {
	for _, capture := range []bool{false, true} {
		arena := -1
		for range 3 + g.IntN(5) {
			b := Buffer{Kind: []BufferKind{Device, Device, Device, Pitch, Async, Pool, Pinned}[g.IntN(7)], Size: bytes, Capture: capture,
				Thread: g.chance(8), Parent: -1}
			if g.chance(6) {
				b.Size += uint64(g.IntN(4096)) &^ 15
			}
			switch {
			case !capture && g.chance(12):
				b.Kind = Registered
			case g.chance(120): // few: a mapping is 2 MiB at least, all of which is compared
				b.Kind, b.Size = Mapped, 2<<20
			case g.chance(80): // likewise
				b.Kind, b.Size = Spanning, bytes
			case g.chance(6):
				b.Freed = 1 + g.IntN(3)
				g.add(b)
				continue
			case g.chance(4):
				if arena < 0 {
					arena = g.add(Buffer{Kind: Device, Size: 8192, Capture: capture, Parent: -1})
				}
				b = Buffer{Kind: Block, Parent: arena, Size: bytes, Capture: capture, Offset: g.block(arena), Temporary: capture && g.chance(2)}
			}
			b.Input = !capture && b.Kind != Pinned && b.Kind != Registered && g.chance(3)
			g.data = append(g.data, g.add(b))
		}
	}
	for range g.IntN(3) { // freed at once by the next allocation, so that its address is reused
		g.add(Buffer{Kind: Device, Size: bytes, Capture: true, Freed: 1, Parent: -1})
		g.data = append(g.data, g.add(Buffer{Kind: Device, Size: bytes, Capture: true, Parent: -1}))
		g.feature("pointer: reused address")
	}
	g.staged, g.fetched = -1, -1
	if g.chance(3) {
		g.staged = g.add(Buffer{Kind: Device, Size: bytes, Parent: -1})
	}
	if g.chance(3) {
		g.fetched = g.add(Buffer{Kind: Device, Size: bytes, Parent: -1})
	}
}

// block finds room for another block in an arena.
func (g *generator) block(arena int) uint64 {
	n := uint64(0)
	for _, b := range g.p.Buffers {
		if b.Kind == Block && b.Parent == arena {
			n++
		}
	}
	return n*(bytes+64) + 128
}

var kindNames = map[BufferKind]string{Device: "device", Pitch: "pitched", Async: "stream-ordered", Pool: "pool", Pinned: "pinned host", Registered: "registered host", Mapped: "mapped (VMM)", Spanning: "across two mappings", Block: "sub-allocated"}

// pick is a buffer to compute on. It notes the kind of pointer that it makes.
func (g *generator) pick() int {
	i := g.data[g.IntN(len(g.data))]
	b := &g.p.Buffers[i]
	g.feature("pointer: %s", kindNames[b.Kind])
	if b.Capture {
		g.feature("pointer: capture phase")
	}
	if b.Thread {
		g.feature("pointer: allocated by another thread")
	}
	return i
}

func (g *generator) modules() {
	for i := range 1 + g.IntN(2) {
		m := Module{Library: g.chance(2), Late: i > 0 && g.chance(2), Where: -1, Written: g.IntN(3)}
		m.ByKernel = m.Library && g.chance(2)
		if m.Late && m.Written == 1 {
			m.Written = 2
		}
		if m.Written != 0 && g.chance(2) {
			m.Where = g.pick()
			if m.Written == 1 {
				m.Where = g.prefix()
			}
		}
		if g.chance(3) {
			a := FuncAttr{Kernel: "shared_row", ID: 8, Value: 50000 + 16*g.IntN(1000)}
			m.Attrs = append(m.Attrs, a)
		}
		if g.chance(4) {
			m.Attrs = append(m.Attrs, FuncAttr{Kernel: "add", ID: 9, Value: g.IntN(101)})
		}
		if g.chance(4) {
			m.Attrs = append(m.Attrs, FuncAttr{Kernel: "add", ID: 14, Value: 1})
		}
		for k := range m.Attrs {
			m.Attrs[k].OnKernel, m.Attrs[k].Capture = m.Library && g.chance(2), m.Late || g.chance(2)
		}
		g.p.Modules = append(g.p.Modules, m)
	}
}

// prefix is a buffer that the engine allocates before the capture phase.
func (g *generator) prefix() int {
	for {
		if i := g.data[g.IntN(len(g.data))]; !g.p.Buffers[i].Capture {
			return i
		}
		if g.chance(50) { // there is none
			i := g.add(Buffer{Kind: Device, Size: bytes, Parent: -1})
			g.data = append(g.data, i)
			return i
		}
	}
}

// tables draws tables of pointers and tensor maps. In the prefix the engine fills them; later ones have to be saved.
func (g *generator) tables() {
	for range g.IntN(3) {
		t := Table{}
		capture := g.chance(2)
		for range 1 + g.IntN(4) {
			to := g.prefix()
			if capture {
				to = g.pick()
			}
			if g.p.Buffers[to].Temporary { // its contents do not last between replays
				to = g.prefix()
			}
			t.Targets = append(t.Targets, Pointer{to, 0})
		}
		if capture {
			g.feature("pointer: in device memory, saved")
			if g.chance(4) {
				t.Targets[0] = Pointer{-1, 0}
				g.feature("pointer: to a variable, in device memory")
			}
		}
		t.Buffer = g.add(Buffer{Kind: Device, Size: 8 * uint64(len(t.Targets)), Capture: capture, Parent: -1})
		g.p.Tables = append(g.p.Tables, t)
	}
	for range g.IntN(3) {
		m := Map{Over: g.pick(), Stored: g.chance(2), Moved: g.chance(3), Rank: 1 + g.IntN(3), Buffer: -1}
		for g.p.Buffers[m.Over].Temporary {
			m.Over = g.prefix()
		}
		if m.Stored {
			m.Buffer = g.add(Buffer{Kind: Device, Size: 256, Capture: true, Parent: -1})
		}
		g.p.Maps = append(g.p.Maps, m)
	}
}

// refuse adds one thing that must be refused, by name.
func (g *generator) refuse() {
	graph := &g.p.Graphs[0]
	if graph.Mode == Captured {
		graph.Mode, graph.Split = Changed, len(graph.Ops)
	}
	op := Op{Kind: HostCall}
	switch g.IntN(7) {
	case 0:
		g.p.Refused = "host function"
	case 1:
		op = Op{Kind: Record, Event: g.p.Events} // the engine creates that one in the capture phase
		g.p.Refused = "created in the capture phase"
	case 2:
		op = Op{Kind: Copy, Src: Pointer{g.prefix(), 0}, ToPageable: true, Width: 16, Height: 1, Depth: 1}
		g.p.Refused = "pageable host memory"
	case 3:
		b := g.add(Buffer{Kind: Managed, Size: bytes, Parent: -1})
		op = Op{Kind: Fill, Dst: Pointer{b, 0}, Elem: 4, Width: 4, Height: 1}
		g.p.Refused = "managed memory"
	case 4:
		op = Op{Kind: Copy, Host: make([]byte, 16), Dst: Pointer{g.prefix(), 0}, Scribbled: true, Width: 16, Height: 1, Depth: 1}
		g.p.Refused = "changed after the graph was made"
	case 5:
		b := g.add(Buffer{Kind: Device, Size: bytes, Capture: true, Parent: -1})
		g.p.FreeLate = append(g.p.FreeLate, b)
		op = Op{Kind: Fill, Dst: Pointer{b, 0}, Elem: 4, Width: 4, Height: 1}
		g.p.Refused = "freed before the engine was ready"
	case 6:
		g.p.Modules[0].Twice = true
		op = Op{Kind: Kernel, Kernel: "stateful", Grid: 4, Block: 16, Args: []Arg{pointer(g.prefix()), number(Words, 4)}}
		g.p.Refused = "loaded more than once"
	}
	last := len(graph.Ops)
	graph.Ops = append(graph.Ops, op)
	for i := range last {
		graph.Edges = append(graph.Edges, Edge{From: i, To: last})
	}
}
