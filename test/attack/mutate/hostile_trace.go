package mutate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"medusa/interpose/trace"
	"medusa/test/tracewriter"
)

// HostileTrace is a trace made to cost a compiler more than its size.
type HostileTrace struct {
	Name string
	Slow bool // even to a compiler that stands it
	make func(records []trace.Record, run uint64) []trace.Record
}

// HostileTraces need a recording with at least one graph.
var HostileTraces = []HostileTrace{
	{"a graph that embeds itself", false, selfEmbedded},
	{"graphs that embed the one before twice, 24 deep", false, doubled},
	{"100000 allocations and 1000 moments", true, moments},
	{"100000 blocks and 20000 pointers", true, blocks},
	{"50000 variables", true, variables},
}

// Write returns the bytes of the trace of one run; addresses differ between runs.
func (h HostileTrace) Write(records []trace.Record, run uint64) ([]byte, error) {
	var buffer bytes.Buffer
	w := tracewriter.New(&buffer)
	for _, rec := range h.make(slices.Clone(records), run) {
		if _, last := rec.(*trace.End); !last {
			w.Write(clone(rec))
		}
	}
	err := w.End()
	return buffer.Bytes(), err
}

// firstGraph returns the place of the first graph, and a copy of it with one more node in its place.
func firstGraph(records []trace.Record) (int, *trace.Graph) {
	i := slices.IndexFunc(records, func(rec trace.Record) bool { return rec.RecordType() == trace.TypeGraph })
	g := clone(records[i]).(*trace.Graph)
	g.Nodes++
	records[i] = g
	return i, g
}

func selfEmbedded(records []trace.Record, _ uint64) []trace.Record {
	i, g := firstGraph(records)
	return slices.Insert(records, i+1, trace.Record(&trace.Child{Graph: g.ID, Node: 1 << 40, Child: g.ID}))
}

func doubled(records []trace.Record, _ uint64) []trace.Record {
	const first, depth = 1 << 20, 24
	i, g := firstGraph(records)
	extra := []trace.Record{&trace.Graph{ID: first, Nodes: 1}, &trace.Empty{Graph: first, Node: 1}}
	for d := uint32(1); d <= depth; d++ {
		extra = append(extra, &trace.Graph{ID: first + d, Nodes: 2}, &trace.Child{Graph: first + d, Node: 1, Child: first + d - 1},
			&trace.Child{Graph: first + d, Node: 2, Child: first + d - 1})
	}
	records = slices.Insert(records, i+1, trace.Record(&trace.Child{Graph: g.ID, Node: 1 << 40, Child: first + depth}))
	return slices.Insert(records, i, extra...)
}

// nextAlloc is the number of the allocation that would come next.
func nextAlloc(records []trace.Record) uint32 {
	n := uint32(0)
	for _, rec := range records {
		if a, is := rec.(*trace.Alloc); is && a.Trigger == 0 {
			n = max(n, a.ID+1)
		}
	}
	return n
}

// elsewhere are addresses that no allocation of the recording has.
func elsewhere(run uint64) uint64 { return 0x3300_0000_0000 + run<<36 }

// moments is one graph of which every node was captured at another moment, among allocations that are freed later.
func moments(records []trace.Record, run uint64) []trace.Record {
	const id, handle, allocs, each = 1 << 20, 1 << 42, 100_000, 100
	i, g := firstGraph(records)
	g.Nodes--
	first := nextAlloc(records)
	var extra, memsets []trace.Record
	var nodes []uint64
	for k := range uint32(allocs) {
		addr := elsewhere(run) + uint64(k)<<16
		extra = append(extra, &trace.Alloc{ID: first + k, Kind: 1, Addr: addr, Size: 4096})
		if k%each == 0 {
			node := uint64(k) + 1
			nodes = append(nodes, node)
			memsets = append(memsets, &trace.Memset{Graph: id, Node: node, Dst: addr + 8, ElemSize: 4, Width: 4, Height: 1})
			extra = append(extra, &trace.Moment{Graph: handle, Nodes: slices.Clone(nodes)})
		}
	}
	extra = append(append(extra, &trace.Graph{ID: id, Handle: handle, Label: "moments", Batch: 77, Nodes: uint32(len(nodes))}), memsets...)
	return slices.Insert(records, i, append(extra, &trace.Exec{Graph: id, Handle: 5})...)
}

func blocks(records []trace.Record, run uint64) []trace.Record {
	const count, size, pointers = 100_000, 512, 20_000
	i, g := firstGraph(records)
	g.Nodes--
	id := nextAlloc(records)
	extra := []trace.Record{&trace.Alloc{ID: id, Kind: 1, Addr: elsewhere(run), Size: count * size}}
	var data []byte
	for k := range uint64(count) {
		extra = append(extra, &trace.Block{Addr: elsewhere(run) + k*size, Size: size, Live: 1})
		if k < pointers {
			data = binary.LittleEndian.AppendUint64(data, elsewhere(run)+(k*7919%count)*size)
		}
	}
	records = append(records[:len(records)-1], &trace.Content{Alloc: id, Data: data}, records[len(records)-1])
	return slices.Insert(records, i, extra...)
}

func variables(records []trace.Record, run uint64) []trace.Record {
	i, g := firstGraph(records)
	g.Nodes--
	module := slices.IndexFunc(records, func(rec trace.Record) bool { return rec.RecordType() == trace.TypeModule })
	id := records[module].(*trace.Module).ID
	var extra, data []trace.Record
	for k := range uint64(50_000) {
		name := fmt.Sprintf("v%d", k)
		extra = append(extra, &trace.Global{Module: id, Name: name, Addr: elsewhere(run) + k<<12, Size: 64})
		data = append(data, &trace.GlobalData{Module: id, Name: name, Data: make([]byte, 64)})
	}
	records = append(append(records[:len(records)-1:len(records)-1], data...), records[len(records)-1])
	return slices.Insert(records, i, extra...)
}
