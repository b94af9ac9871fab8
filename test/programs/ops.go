package programs

import "slices"

// Resources order operations: buffers by index, and variables.
const (
	stateOf = -1 // minus the module: its variables

	fewestOps = 2
)

// drawer draws the operations of one graph.
type drawer struct {
	*generator
	written map[int]bool // temporaries that are written by now
	depth   int          // how many graphs it is embedded in
}

func (g *generator) graphs() {
	for i := range 1 + g.IntN(2) {
		if i > 0 && !g.chance(3) {
			if like, ok := g.vary(&g.p.Graphs[0]); ok {
				g.p.Graphs = append(g.p.Graphs, like)
				g.feature("template: shared")
				continue
			}
		}
		mode := Mode(g.IntN(3))
		graph := g.graph(mode, 0)
		graph.Flags = []uint64{0, 0, 8}[g.IntN(3)]
		g.p.Graphs = append(g.p.Graphs, graph)
		g.feature("graph: %s", [...]string{"built", "captured", "captured and changed"}[mode])
	}
}

func (g *generator) graph(mode Mode, depth int) Graph {
	d := &drawer{g, map[int]bool{}, depth}
	out := Graph{Mode: mode}
	n := fewestOps + g.IntN(7)
	out.Split = n
	if mode == Changed {
		out.Split = 1 + g.IntN(n-1)
	}
	if depth == 0 && g.staged >= 0 && g.chance(2) {
		out.Ops = append(out.Ops, Op{Kind: Wait, Event: g.IntN(g.p.Events), writes: []int{g.staged}})
		g.feature("node: event wait")
	}
	for len(out.Ops) < n {
		captured := mode == Captured || mode == Changed && len(out.Ops) < out.Split
		out.Ops = append(out.Ops, d.op(captured, len(out.Ops) > 0))
	}
	if depth == 0 && g.fetched >= 0 && g.chance(2) {
		d.finish(&out)
	}
	g.connect(&out)
	if mode != Built {
		kernel := map[int]bool{} // the last operation of a stream is one
		for i, o := range out.Ops {
			s := g.IntN(3)
			out.Streams = append(out.Streams, s)
			if o.Serial && kernel[s] && (mode == Captured || i < out.Split) {
				g.feature("edge: programmatic, captured")
			}
			kernel[s] = o.Kind == Kernel
		}
	}
	return out
}

// finish writes the buffer that is read as soon as an event is recorded, and records it.
func (d *drawer) finish(out *Graph) {
	add := d.kernel("add", 0, []int{d.read(), d.read()}, d.fetched)
	event := d.IntN(d.p.Events)
	for _, o := range out.Ops {
		if o.Kind == Wait && o.Event == event { // one graph may not wait for an event that it records
			return
		}
	}
	out.Ops = append(out.Ops, add, Op{Kind: Record, Event: event, reads: []int{d.fetched}})
	if out.Mode == Captured {
		out.Split = len(out.Ops)
	}
	d.feature("node: event record")
}

// read is a buffer that has contents.
func (d *drawer) read() int {
	for {
		i := d.pick()
		if !d.p.Buffers[i].Temporary || d.written[i] {
			return i
		}
	}
}

// overwrite is a buffer that an operation writes as a whole.
func (d *drawer) overwrite() int {
	i := d.pick()
	d.written[i] = true
	return i
}

func (d *drawer) op(captured, later bool) Op {
	switch k := d.IntN(20); {
	case k < 3:
		return d.copy()
	case k < 5:
		return d.fill()
	case k == 5 && !captured:
		d.feature("node: empty")
		return Op{Kind: Empty}
	case (k == 6 || k == 8 || k == 9 && d.depth > 0) && !captured && d.depth < 2:
		return d.child()
	case k == 10:
		return d.memOps()
	case k == 7 && d.staged >= 0 && d.depth == 0 && later: // only behind the wait, which connect sees to
		return d.kernel("add", d.module(), []int{d.staged, d.read()}, d.overwrite())
	}
	return d.anyKernel()
}

func (d *drawer) module() int { return d.IntN(len(d.p.Modules)) }

func (d *drawer) child() Op {
	d.feature("node: child graph")
	inner := d.graph(Built, d.depth+1)
	if d.depth > 0 {
		d.feature("node: child graph in a child graph")
	}
	op := Op{Kind: Child, Child: &inner}
	for _, o := range inner.Ops {
		op.reads, op.writes = append(op.reads, o.reads...), append(op.writes, o.writes...)
	}
	return op
}

func (d *drawer) fill() Op {
	to := d.overwrite()
	elem := uint32(1) << d.IntN(3)
	op := Op{Kind: Fill, Dst: Pointer{to, 0}, Elem: elem, Value: d.Uint32() & (1<<(8*elem) - 1), writes: []int{to}}
	op.Width, op.Height = bytes/uint64(elem), 1
	if d.chance(3) { // rows that the pitch leaves no gaps between, so that all is written
		op.Height, op.Width, op.DstPitch = 4, bytes/4/uint64(elem), bytes/4
		d.feature("node: memset 2D")
		return op
	}
	d.feature("node: memset 1D")
	return op
}

// memOps writes a few values into a buffer, and may wait for the last one.
func (d *drawer) memOps() Op {
	to := d.read()
	op := Op{Kind: MemOps, reads: []int{to}, writes: []int{to}}
	for range 1 + d.IntN(3) {
		m := MemOp{At: Pointer{to, uint64(8 * d.IntN(bytes/8))}, Value: uint64(d.Uint32()), Wide: d.chance(2)}
		if m.Wide {
			m.Value |= uint64(d.Uint32()) << 32
		}
		op.Mem = append(op.Mem, m)
	}
	d.feature("node: memory operations")
	if d.chance(3) {
		m := op.Mem[len(op.Mem)-1]
		m.Wait = true
		op.Mem = append(op.Mem, m)
		d.feature("node: memory operation that waits")
	}
	return op
}

func (d *drawer) copy() Op {
	from, to := d.read(), d.pick()
	for from == to {
		from, to = d.read(), d.pick()
	}
	op := Op{Kind: Copy, Src: Pointer{from, 0}, Dst: Pointer{to, 0}, Width: bytes, Height: 1, Depth: 1, reads: []int{from}, writes: []int{to}}
	switch d.IntN(6) {
	case 0:
		op.Width, op.Height, op.SrcPitch, op.DstPitch = bytes/4, 4, bytes/4, bytes/4
		d.feature("node: memcpy 2D")
	case 1:
		op.Width, op.Height, op.Depth, op.SrcPitch, op.DstPitch = bytes/8, 2, 4, bytes/8, bytes/8
		d.feature("node: memcpy 3D")
	case 2:
		op.reads = nil
		op.Host = make([]byte, bytes)
		if d.chance(2) { // rows with gaps between them, which the copy does not read
			op.Width, op.Height, op.SrcPitch, op.DstPitch = bytes/4, 4, bytes/4+16, bytes/4
			op.Host = make([]byte, 4*op.SrcPitch)
		}
		for i := range op.Host {
			op.Host[i] = byte(d.Uint32())
		}
		d.feature("node: memcpy from pageable memory")
	case 3:
		if len(d.p.Tables) > 0 {
			t := d.IntN(len(d.p.Tables))
			table := &d.p.Tables[t]
			op.reads, op.writes = nil, []int{table.Buffer}
			op.Dst, op.Width = Pointer{table.Buffer, 0}, 8*uint64(len(table.Targets))
			for range table.Targets {
				op.HostTable = append(op.HostTable, Pointer{d.keeps(), 0})
			}
			d.feature("pointer: in pageable memory that a copy reads")
		}
	default:
		d.feature("node: memcpy 1D")
	}
	if op.HostTable == nil {
		d.written[to] = true
	}
	if d.p.Buffers[op.Src.Buffer].Kind == Pinned && op.Host == nil && op.HostTable == nil {
		d.feature("node: memcpy from pinned memory")
	}
	if d.p.Buffers[op.Dst.Buffer].Kind == Pinned {
		d.feature("node: memcpy to pinned memory")
	}
	return op
}

// keeps is a buffer that has contents between replays, too.
func (d *drawer) keeps() int {
	for {
		if i := d.pick(); !d.p.Buffers[i].Temporary {
			return i
		}
	}
}

func pointer(b int) Arg       { return Arg{Pointer: &Pointer{b, 0}} }
func number(v, size int) Arg  { return Arg{Number: uint64(v), Size: size} }
func writesAll(k string) bool { return k == "add" }

// kernel is a launch over all words that reads and writes buffers.
func (d *drawer) kernel(name string, module int, reads []int, out int) Op {
	op := Op{Kind: Kernel, Kernel: name, Module: module, Grid: 4, Block: 16, reads: reads, writes: []int{out}}
	switch name {
	case "axpy", "axmy":
		op.Args = []Arg{{Struct: []Arg{pointer(reads[0]), pointer(out), number(1+d.IntN(9), 4), number(Words, 4)}}}
		d.feature("pointer: by-value struct")
	case "padded":
		op.Args = []Arg{{Struct: []Arg{pointer(reads[0]), number(1+d.IntN(200), 1), {Padding: 7}, pointer(out), number(Words, 4), {Padding: 4}}}}
		d.feature("parameter: struct with padding")
		if d.depth > 0 {
			d.feature("parameter: struct with padding, in a child graph")
		}
	default:
		for _, r := range reads {
			op.Args = append(op.Args, pointer(r))
		}
		op.Args = append(op.Args, pointer(out), number(Words, 4))
	}
	if !writesAll(name) {
		op.reads = append(slices.Clone(op.reads), out)
	}
	d.feature("node: kernel")
	d.feature("pointer: parameter")
	m := d.p.Modules[module]
	if m.Library {
		d.feature("kernel: of a library")
	}
	if m.ByKernel {
		d.feature("kernel: named by CUkernel")
	}
	if m.Late {
		d.feature("kernel: of a module that loads late")
	}
	d.decorate(&op)
	return op
}

func (d *drawer) anyKernel() Op {
	module := d.module()
	kinds := 13
	if d.depth > 0 { // padding of embedded graphs is settled apart
		kinds++
	}
	switch d.IntN(kinds) {
	case 0:
		return d.kernel("axpy", module, []int{d.read()}, d.read())
	case 1:
		return d.kernel("axmy", module, []int{d.read()}, d.read())
	case 2:
		return d.table(module)
	case 3:
		op := d.kernel("tag", module, nil, d.read())
		op.Args = []Arg{op.Args[0], {Number: d.Uint64() | 1<<63, Size: 8}, op.Args[1]}
		d.feature("parameter: 64-bit constant")
		if d.depth == 0 && d.chance(2) {
			op.Kernel = "aside"
			op.Args = append(op.Args, Arg{Host: true})
			d.feature("parameter: address of the host's memory")
		}
		return op
	case 4:
		op := d.kernel("stateful", module, nil, d.read())
		op.reads = append(op.reads, stateOf-module)
		d.feature("variable: read by a kernel")
		return op
	case 5:
		d.feature("variable: written by a kernel")
		return Op{Kind: Kernel, Kernel: "bump", Module: module, Grid: 4, Block: 16, Args: []Arg{number(d.IntN(99), 4)},
			reads: []int{stateOf - module}, writes: []int{stateOf - module}}
	case 6:
		op := d.kernel("through", module, nil, d.read())
		if w := d.p.Modules[module].Where; w >= 0 && !d.p.Buffers[w].Temporary && w != op.writes[0] {
			op.reads = append(op.reads, w)
			d.feature("pointer: in a variable")
		} else if w >= 0 {
			return d.kernel("add", module, []int{d.read(), d.read()}, d.overwrite())
		}
		return op
	case 7, 8:
		return d.mapped(module)
	case 9:
		op := d.kernel("shared_row", module, []int{d.read()}, d.read())
		op.Args = append(op.Args, number(0, 4))
		op.Shared = 64
		for _, a := range d.p.Modules[module].Attrs {
			if a.ID == 8 {
				op.Shared = uint32(a.Value)
				op.Args[3] = number(a.Value/4-16, 4)
				d.feature("function: dynamic shared memory above 48 KiB")
			}
		}
		return op
	case 10:
		op := d.kernel("axpy", module, []int{stateOf - module}, d.read())
		op.Args[0].Struct[0] = Arg{Pointer: &Pointer{-1 - module, 0}}
		d.feature("pointer: to a variable")
		return op
	case 11, 13:
		return d.kernel("padded", module, []int{d.read()}, d.read())
	}
	return d.kernel("add", module, []int{d.read(), d.read()}, d.overwrite())
}

// table gathers through a table; the memory that its pointers lead to is read as well.
func (d *drawer) table(module int) Op {
	if len(d.p.Tables) == 0 {
		return d.kernel("add", module, []int{d.read(), d.read()}, d.overwrite())
	}
	t := d.p.Tables[d.IntN(len(d.p.Tables))]
	out := d.read()
	op := d.kernel("gather", module, nil, out)
	op.Args = []Arg{pointer(t.Buffer), number(len(t.Targets), 4), pointer(out), number(Words, 4)}
	op.reads = append(op.reads, t.Buffer)
	// A copy may have put any buffers into the table by then.
	op.reads = append(op.reads, d.data...)
	for m := range d.p.Modules {
		op.reads = append(op.reads, stateOf-m)
	}
	return op
}

func (d *drawer) mapped(module int) Op {
	if len(d.p.Maps) == 0 {
		return d.kernel("add", module, []int{d.read(), d.read()}, d.overwrite())
	}
	i := d.IntN(len(d.p.Maps))
	m := d.p.Maps[i]
	out := d.read()
	for out == m.Over {
		out = d.read()
	}
	name := "mapped"
	if m.Stored {
		name = "mapped_memory"
	}
	op := d.kernel(name, module, nil, out)
	op.reads = append(op.reads, m.Over)
	first := Arg{Map: 1 + i}
	if m.Stored {
		first = pointer(m.Buffer)
		op.reads = append(op.reads, m.Buffer)
		d.feature("pointer: tensor map in device memory")
	} else {
		d.feature("pointer: tensor map parameter")
	}
	if m.Moved {
		d.feature("pointer: moved tensor map")
	}
	op.Args = append([]Arg{first}, op.Args...)
	return op
}
