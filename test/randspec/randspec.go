// Package randspec makes valid random Specs for property tests and benchmarks, the same for the same seed.
package randspec

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"medusa/graphir"
)

// New returns a small Spec that uses every feature of the IR.
func New(seed uint64) *graphir.Spec {
	g := &generator{rand.New(rand.NewPCG(seed, 1)), &graphir.Spec{}}
	g.allocations(1 + g.IntN(40))
	g.modules(1 + g.IntN(4))
	if g.IntN(2) == 0 {
		g.tables()
	}
	for range g.IntN(6) {
		g.graph()
	}
	g.collectives(seed)
	g.contents()
	g.exact()
	for i := range g.IntN(8) {
		at := g.pointer()
		g.spec.Tensors = append(g.spec.Tensors, graphir.Tensor{Name: fmt.Sprintf("layer.%d.ü", i),
			Role: graphir.Role(1 + g.IntN(4)), DType: graphir.DType(1 + g.IntN(6)), At: at,
			Size:  g.Uint64N(g.spec.Allocations[at.Index].Size - at.Offset + 1),
			Shape: []int64{g.Int64N(9), g.Int64()}, Lo: -g.Int64(), Hi: g.Int64(), Distinct: g.IntN(2) == 0})
		t := &g.spec.Tensors[i]
		for k := range g.spec.Graphs {
			if t.Role == graphir.RoleOutput && g.IntN(2) == 0 {
				t.Graphs = append(t.Graphs, uint32(k))
			}
		}
	}
	for i := range g.IntN(3) {
		g.spec.Notes = append(g.spec.Notes, graphir.Note{Name: fmt.Sprintf("note.%d", i), Value: g.bytes(g.IntN(100))})
	}
	for _, graph := range g.spec.Graphs {
		if g.IntN(3) == 0 {
			g.spec.Triggers = append(g.spec.Triggers, graphir.Trigger{Batch: graph.Batch,
				Kernels: []uint32{g.kernel(), g.kernel()}, Launches: g.Uint32()})
		}
	}
	return g.spec
}

// exact gives some allocations addresses, and a module its image.
func (g *generator) exact() {
	s := g.spec
	if g.IntN(2) == 0 {
		s.Region = graphir.Region{Base: 1 + g.Uint64N(1<<47), Size: 1 << 62}
		for i := range s.Allocations {
			if g.IntN(3) > 0 && s.Allocations[i].Size < 1<<60 {
				s.Allocations[i].Address = s.Region.Base + g.Uint64N(1<<40)
			}
		}
	}
	if g.IntN(3) == 0 {
		image := g.bytes(1 + g.IntN(99))
		m := &s.Modules[g.IntN(len(s.Modules))]
		m.ImageSHA256, m.ImageSize, m.Reload = sha256.Sum256(image), uint64(len(image)), true
		s.Images = append(s.Images, graphir.Image{Data: image})
	}
}

// tables fills the fields that version 2 of the format added.
func (g *generator) tables() {
	s := g.spec
	for range g.IntN(4) {
		s.Globals = append(s.Globals, graphir.Global{Module: uint32(g.IntN(len(s.Modules))), Name: fmt.Sprintf("state%d", g.IntN(3)), Size: 64 + g.Uint64N(99)})
		s.HostBuffers = append(s.HostBuffers, graphir.HostBuffer{Size: 64 + g.Uint64N(99)})
		s.Events = append(s.Events, graphir.Event{Flags: g.Uint32N(8), Step: g.Uint32()})
		rank := 1 + g.IntN(5)
		m := graphir.TensorMap{DataType: g.Uint32N(12), Interleave: g.Uint32N(3), Swizzle: g.Uint32N(4), L2Promotion: g.Uint32N(4), OOBFill: g.Uint32N(2)}
		for i := range rank {
			m.GlobalDim, m.BoxDim, m.ElementStrides = append(m.GlobalDim, g.Uint64()), append(m.BoxDim, g.Uint32()), append(m.ElementStrides, 1)
			if i > 0 {
				m.GlobalStrides = append(m.GlobalStrides, g.Uint64())
			}
		}
		s.TensorMaps = append(s.TensorMaps, m)
		child := graphir.Graph{}
		for range g.IntN(5) {
			child.Nodes = append(child.Nodes, g.node())
		}
		s.Children = append(s.Children, child)
	}
}

// anyPointer is a pointer in any space that has objects.
func (g *generator) anyPointer() graphir.Pointer {
	if n := len(g.spec.Globals); n > 0 && g.IntN(3) == 0 {
		return graphir.Pointer{Index: uint32(g.IntN(n)), Offset: g.Uint64N(64), Space: graphir.Space(1 + g.IntN(2))}
	}
	return g.pointer()
}

type generator struct {
	*rand.Rand
	spec *graphir.Spec
}

func (g *generator) bytes(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		if g.IntN(3) == 0 {
			out[i] = byte(g.Uint32())
		}
	}
	return out
}

func (g *generator) allocations(n int) {
	s := g.spec
	live := []uint32{}
	for i := range n {
		s.Allocations = append(s.Allocations, graphir.Allocation{Kind: graphir.AllocKind(1 + g.IntN(8)),
			Owner: graphir.Owner(1 + g.IntN(2)), Size: 64 + g.Uint64()>>(8+g.IntN(52)), Live: true})
		s.Sequence = append(s.Sequence, graphir.Step{Alloc: uint32(i)})
		live = append(live, uint32(i))
		for len(live) > 0 && g.IntN(3) == 0 {
			k := g.IntN(len(live))
			s.Sequence = append(s.Sequence, graphir.Step{Free: true, Alloc: live[k]})
			s.Allocations[live[k]].Live = false
			live = slices.Delete(live, k, k+1)
		}
	}
}

func (g *generator) modules(n int) {
	for i := range n {
		m := graphir.Module{Kind: graphir.ModuleKind(1 + g.IntN(3)), ImageSize: g.Uint64(), DSOOffset: g.Uint64(),
			DSO: fmt.Sprintf("lib%d.so", g.IntN(2)), BuildID: fmt.Sprintf("%x", g.Uint64())}
		copy(m.ImageSHA256[:], g.bytes(32))
		for k := range 1 + g.IntN(5) {
			m.Functions = append(m.Functions, fmt.Sprintf("_Z%dkernel%02d", i, k))
		}
		for _, name := range m.Functions {
			g.spec.Kernels = append(g.spec.Kernels, graphir.Kernel{Name: name, Module: uint32(i), Params: g.params(),
				Attrs: []graphir.FuncAttr{{ID: g.Uint32(), Value: g.Int64() - g.Int64()}}})
		}
		g.spec.Modules = append(g.spec.Modules, m)
	}
}

func (g *generator) params() []graphir.Param {
	var out []graphir.Param
	at := uint32(0)
	for range g.IntN(5) {
		p := graphir.Param{Offset: at, Size: []uint32{1, 4, 8, 8, 20}[g.IntN(5)]}
		out = append(out, p)
		at = (p.Offset + p.Size + 7) &^ 7
	}
	return out
}

func (g *generator) kernel() uint32 { return g.Uint32N(uint32(len(g.spec.Kernels))) }

func (g *generator) pointer() graphir.Pointer {
	p := graphir.Pointer{Index: g.Uint32N(uint32(len(g.spec.Allocations)))}
	p.Offset = g.Uint64N(g.spec.Allocations[p.Index].Size + 1)
	return p
}

// relocations chooses places in data and clears them.
func (g *generator) relocations(data []byte) []graphir.Relocation {
	var out []graphir.Relocation
	for at := g.IntN(9); at+8 <= len(data); at += 8 + g.IntN(3)*4 {
		if g.IntN(2) == 0 {
			f := graphir.Relocation{Offset: uint32(at), Pointer: g.anyPointer()}
			if n := len(g.spec.TensorMaps); n > 0 && at+graphir.TensorMapBytes <= len(data) {
				f.TensorMap = uint32(g.IntN(n + 1))
			}
			clear(data[at : at+int(f.Size())])
			at += int(f.Size()) - 8
			out = append(out, f)
		}
	}
	return out
}

func (g *generator) dim() [3]uint32 {
	return [3]uint32{1 + g.Uint32N(300), 1 + g.Uint32N(2), 1 + g.Uint32()>>1}
}

// graph is a new one, or an earlier one with other values, for which there are templates.
func (g *generator) graph() {
	s := g.spec
	graph := graphir.Graph{Label: fmt.Sprintf("decode %d", len(s.Graphs)), Batch: g.Int64() - g.Int64(), InstantiateFlags: g.Uint64N(3)}
	if len(s.Graphs) > 0 && g.IntN(2) == 0 {
		old := s.Graphs[g.IntN(len(s.Graphs))]
		graph.Edges = slices.Clone(old.Edges)
		if n := len(graph.Edges); n > 0 && g.IntN(3) == 0 {
			graph.Edges[g.IntN(n)].Type ^= 1
		}
		for _, n := range old.Nodes {
			graph.Nodes = append(graph.Nodes, g.vary(n))
		}
	} else {
		for range g.IntN(20) {
			graph.Nodes = append(graph.Nodes, g.node())
		}
		order := g.Perm(len(graph.Nodes))
		for range g.IntN(2*len(graph.Nodes) + 1) {
			a, b := g.IntN(len(order)), g.IntN(len(order))
			if a == b {
				continue
			}
			edge := graphir.Edge{From: uint32(order[min(a, b)]), To: uint32(order[max(a, b)])}
			if g.IntN(4) == 0 {
				edge.FromPort, edge.ToPort, edge.Type = uint8(g.IntN(3)), uint8(g.IntN(256)), 1
			}
			graph.Edges = append(graph.Edges, edge)
		}
	}
	s.Graphs = append(s.Graphs, graph)
}

// collectives puts calls of a communicator in the place of some nodes, in any order, in one graph of three. A graph that
// was made of an earlier one has its calls in the same places or in others. Numbers of their own leave the rest of the Spec as it is.
func (g *generator) collectives(seed uint64) {
	own := &generator{rand.New(rand.NewPCG(seed, 2)), g.spec}
	for i := range g.spec.Graphs {
		nodes := g.spec.Graphs[i].Nodes
		if own.IntN(3) > 0 {
			continue
		}
		number := uint32(0)
		for _, at := range own.Perm(len(nodes))[:own.IntN(len(nodes)/2+1)] {
			if n := own.collective(number); n != nil {
				nodes[at] = graphir.Node{Type: graphir.NodeCollective, Params: n}
				number++
			}
		}
	}
}

// collective is nil if the pointers that it drew leave no room.
func (g *generator) collective(number uint32) *graphir.CollectiveNode {
	c := graphir.Collective{Number: number, Operation: g.Uint32N(9), DType: g.Uint32N(9), Reduce: g.Uint32N(5), Root: g.Uint32(), Count: g.Uint64(),
		Send: g.anyPointer(), Recv: g.anyPointer()}
	send, recv := g.room(c.Send), g.room(c.Recv)
	if send == 0 || recv == 0 {
		return nil
	}
	c.SendBytes, c.RecvBytes = 1+g.Uint64N(send), 1+g.Uint64N(recv)
	return graphir.NewCollective(c)
}

func (g *generator) node() graphir.Node {
	switch g.IntN(9) {
	case 8:
		if m := g.memOps(); m != nil {
			return graphir.Node{Type: graphir.NodeMemOps, Params: m}
		}
	case 0:
		return graphir.Node{Type: graphir.NodeEmpty}
	case 6:
		if n := len(g.spec.Children); n > 0 {
			return graphir.Node{Type: graphir.NodeChild, Target: uint32(g.IntN(n))}
		}
	case 7:
		if n := len(g.spec.Events); n > 0 {
			return graphir.Node{Type: graphir.NodeEventWait + graphir.NodeType(g.IntN(2)), Target: uint32(g.IntN(n))}
		}
	case 1:
		return graphir.Node{Type: graphir.NodeMemset, Params: g.memset()}
	case 2:
		return graphir.Node{Type: graphir.NodeMemcpy, Params: g.memcpy()}
	}
	k := &graphir.KernelNode{Kernel: g.kernel(), Grid: g.dim(), Block: g.dim(), SharedBytes: g.Uint32N(9999)}
	size := g.IntN(8) + g.IntN(2)*200
	for _, p := range g.spec.Kernels[k.Kernel].Params {
		size = max(size, int(p.Offset+p.Size))
	}
	k.Params = g.bytes(size)
	k.Relocations = g.relocations(k.Params)
	for range g.IntN(3) {
		a := graphir.NodeAttr{ID: g.Uint32N(12), Value: [64]byte(g.bytes(64))}
		if g.IntN(4) == 0 && len(g.spec.Globals) > 0 {
			at := g.anyPointer()
			a.Base = &at
			clear(a.Value[:8])
		}
		k.Attrs = append(k.Attrs, a)
	}
	return graphir.Node{Type: graphir.NodeKernel, Params: k}
}

// room is how many bytes lie behind a pointer.
func (g *generator) room(p graphir.Pointer) uint64 {
	return g.spec.ObjectSize(g.spec.Target(p)) - p.Offset
}

// memset fills rows, one of them, or none. If it fills none, its sizes have any values.
func (g *generator) memset() *graphir.MemsetNode {
	m := &graphir.MemsetNode{Dst: g.anyPointer(), Pitch: g.Uint64(), Value: g.Uint32(), ElemSize: 1 << g.IntN(3), Height: 1}
	room := g.room(m.Dst)
	switch g.IntN(3) {
	case 0:
		m.Width, m.Height = g.Uint64(), 0
	case 1:
		m.Width = g.Uint64N(room/uint64(m.ElemSize) + 1)
	case 2:
		m.Width, m.Height = g.Uint64N(room/uint64(3*m.ElemSize)+1), 2
		m.Pitch = m.Width*uint64(m.ElemSize) + g.Uint64N(room/3+1)
	}
	return m
}

// memOps writes values, each once, and waits for some of them; nil if the pointers that it drew leave no room.
func (g *generator) memOps() *graphir.MemOpsNode {
	var ops []graphir.MemOp
	for range 1 + g.IntN(4) {
		op := graphir.MemOp{Operation: 2, At: g.anyPointer(), Value: uint64(g.Uint32()), Flags: g.Uint32N(2)}
		op.At.Offset &^= 7
		if g.room(op.At) < 8 {
			continue
		}
		if g.IntN(2) == 0 {
			op.Operation, op.Value = 5, g.Uint64()
		}
		if ops = append(ops, op); g.IntN(3) == 0 {
			op.Operation, op.Flags = op.Operation-1, uint32(g.IntN(2)) // wait64 is 4, wait32 is 1
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return graphir.NewMemOps(ops)
}

// memcpy copies slices of rows, a row, or none, likewise.
func (g *generator) memcpy() *graphir.MemcpyNode {
	end := func() graphir.MemcpyEnd {
		return graphir.MemcpyEnd{Pointer: g.anyPointer(), X: g.Uint64N(9), Y: g.Uint64(), Z: g.Uint64N(3), Pitch: g.Uint64(), Height: g.Uint64N(5)}
	}
	m := &graphir.MemcpyNode{Src: end(), Dst: end(), Width: g.Uint64N(999), Height: 1, Depth: 1}
	if g.IntN(3) == 0 {
		m.Depth, m.Height = 0, g.Uint64()
		return m
	}
	room := min(g.room(m.Src.Pointer), g.room(m.Dst.Pointer))
	m.Width = g.Uint64N(room/8 + 1)
	for _, e := range []*graphir.MemcpyEnd{&m.Src, &m.Dst} {
		e.X, e.Y, e.Z = g.Uint64N(room/8+1), 0, 0
	}
	if g.IntN(2) == 0 {
		m.Height, m.Depth = 2, 2
		for _, e := range []*graphir.MemcpyEnd{&m.Src, &m.Dst} { // four rows in a quarter of the room each
			e.X, e.Pitch, e.Height = 0, m.Width+g.Uint64N(room/16+1), 2
		}
	}
	return m
}

// vary returns a copy of a node with some values changed.
func (g *generator) vary(n graphir.Node) graphir.Node {
	if m := n.MemOps(); m != nil {
		if other := g.memOps(); other != nil {
			n.Params = other
		}
		return n
	}
	if n.Kernel() == nil {
		return n
	}
	k := *n.Kernel()
	k.Params, k.Relocations = slices.Clone(k.Params), slices.Clone(k.Relocations)
	if g.IntN(2) == 0 {
		k.Grid[0] = 1 + g.Uint32N(9)
	}
	for i := range k.Relocations {
		if g.IntN(2) == 0 {
			k.Relocations[i].Pointer = g.anyPointer()
		}
	}
	if len(k.Params) > 0 && len(k.Relocations) == 0 {
		k.Params[g.IntN(len(k.Params))] ^= 0xff
	}
	n.Params = &k
	return n
}

// contents saves pieces of some allocations, a few of them equal.
func (g *generator) contents() {
	s := g.spec
	shared := g.bytes(24)
	for i, a := range s.Allocations {
		if a.Owner != graphir.OwnerGraph || g.IntN(3) > 0 {
			continue
		}
		c := graphir.Content{Alloc: uint32(i), Offset: g.Uint64N(min(a.Size-64, 1<<20) + 1), Data: slices.Clone(shared)}
		if g.IntN(2) == 0 {
			c.Data = g.bytes(g.IntN(65))
			c.Relocations = g.relocations(c.Data)
		}
		if len(c.Data) > 16 && len(c.Relocations) == 0 && g.IntN(2) == 0 {
			clear(c.Data[3:7])
			c.Unstable = []graphir.Range{{Offset: 3, Size: 3}, {Offset: 6, Size: 1}}
		}
		s.Contents = append(s.Contents, c)
	}
	for i, h := range s.HostBuffers {
		c := graphir.Content{Alloc: uint32(i), Space: graphir.SpaceHost, Data: g.bytes(int(h.Size))}
		c.Relocations = g.relocations(c.Data)
		s.Contents = append(s.Contents, c)
	}
	slices.SortStableFunc(s.Contents, func(a, b graphir.Content) int { return cmp.Compare(a.Alloc%3, b.Alloc%3) })
}
