package compile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
	"medusa/test/tracewriter"
)

// tape writes the trace of one made-up run. Two tapes made by the same function with other addresses are record-a and record-b.
type tape struct {
	recs   []trace.Record
	allocs uint32
	node   uint64
	graph  uint32
	seed   byte // tells the runs apart if a test wants them to differ
}

func newTape(seed byte) *tape {
	t := &tape{seed: seed, node: uint64(seed) << 32}
	t.add(&trace.Process{Protocol: 1, PID: 1},
		&trace.Device{Name: "Simulated GPU", Driver: 12080, TotalMem: 1 << 30})
	return t
}

func (t *tape) add(recs ...trace.Record) { t.recs = append(t.recs, recs...) }

func (t *tape) phase(name string) { t.add(&trace.Phase{Name: name}) }

func (t *tape) alloc(addr, size uint64) uint32 {
	t.add(&trace.Alloc{ID: t.allocs, Kind: trace.AllocDevice, Addr: addr, Size: size})
	t.allocs++
	return t.allocs - 1
}

func (t *tape) free(id uint32) { t.add(&trace.Free{ID: id, Kind: trace.AllocDevice}) }

// function records a module with one function whose parameters have the given sizes, each aligned to eight bytes.
func (t *tape) function(id uint32, kind trace.ModuleKind, name string, sizes ...uint32) {
	m := &trace.Module{ID: id, Kind: kind, Handle: uint64(id) + uint64(t.seed)<<16}
	if kind != trace.ModuleHidden {
		m.SHA256 = []byte(name + " image, thirty-two bytes and more")[:32]
	}
	f := &trace.Function{ID: id, Module: id, Name: name}
	var off uint32
	for _, s := range sizes {
		f.Params = append(f.Params, trace.FunctionParam{Offset: off, Size: s})
		off += (s + 7) &^ 7
	}
	t.add(m, &trace.Names{Module: id, Names: []string{name}}, f)
}

// capture records a graph of the given nodes in one line, instantiated.
func (t *tape) capture(label string, batch int64, nodes ...trace.Record) {
	g := &trace.Graph{ID: t.graph, Handle: 7, Label: label, Batch: batch, Nodes: uint32(len(nodes)), Edges: uint32(max(0, len(nodes)-1))}
	t.graph++
	t.add(g)
	t.add(nodes...)
	for i := range nodes[1:] {
		t.add(&trace.Edge{Graph: g.ID, From: nodeHandle(nodes[i]), To: nodeHandle(nodes[i+1])})
	}
	t.add(&trace.Exec{Graph: g.ID, Handle: 9})
}

// kernel makes a node for the next capture; each word is eight bytes of its parameter buffer.
func (t *tape) kernel(function uint32, words ...uint64) *trace.Kernel {
	t.node++
	k := &trace.Kernel{Graph: t.graph, Node: t.node, Function: function, Grid: []uint32{1, 1, 1}, Block: []uint32{32, 1, 1}}
	for _, w := range words {
		k.Params = binary.LittleEndian.AppendUint64(k.Params, w)
	}
	return k
}

// recording writes the tape to a file and reads it back as recording.Read does.
func (t *tape) recording(tb testing.TB) *recording.Recording {
	tb.Helper()
	r, err := recording.Read(t.file(tb, true))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func (t *tape) file(tb testing.TB, end bool) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "run.trace")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := tracewriter.New(f)
	for _, r := range t.recs {
		w.Write(r)
	}
	finish := w.Flush
	if end {
		finish = w.End
	}
	if err := finish(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// own is a recording with its own numbers.
func own(r *recording.Recording) *run { return newRun(r, numbered(r, nil), numberVariables(r)) }

// proven compiles two recordings, and fails if compiling presumes padding.
func proven(a, b *recording.Recording) (*graphir.Spec, error) {
	spec, pads, err := Compile(a, b, nil)
	if err == nil {
		err = pads.Unproven()
	}
	return spec, err
}
