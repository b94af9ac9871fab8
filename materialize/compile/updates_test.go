package compile

import (
	"errors"
	"testing"

	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// An update to an equal graph is accepted. Another node or edge is refused, and the error names the node.
func TestUpdates(t *testing.T) {
	const a, b = 0x7f0000000000, 0x7f0000010000
	base := func(tp *tape) []trace.Record {
		tp.node += 2
		return []trace.Record{tp.kernel(0, a, 5),
			&trace.Memset{Graph: tp.graph, Node: tp.node - 1, Dst: b, ElemSize: 1, Width: 8, Height: 1},
			&trace.Memcpy{Graph: tp.graph, Node: tp.node - 2, Src: a, Dst: b, Width: 8, Height: 1, Depth: 1}}
	}
	for _, row := range []struct {
		name    string
		change  func(tp *tape, nodes []trace.Record) []trace.Record
		node    int
		refused bool
	}{
		{"equal", func(tp *tape, nodes []trace.Record) []trace.Record { return nodes }, 0, false},
		{"parameter", func(tp *tape, nodes []trace.Record) []trace.Record {
			nodes[0].(*trace.Kernel).Params[8]++
			return nodes
		}, 0, true},
		{"grid", func(tp *tape, nodes []trace.Record) []trace.Record {
			nodes[0].(*trace.Kernel).Grid[2] = 2
			return nodes
		}, 0, true},
		{"memset", func(tp *tape, nodes []trace.Record) []trace.Record {
			nodes[1].(*trace.Memset).Value++
			return nodes
		}, 1, true},
		{"copy", func(tp *tape, nodes []trace.Record) []trace.Record {
			nodes[2].(*trace.Memcpy).Dst++
			return nodes
		}, 2, true},
		{"one node less", func(tp *tape, nodes []trace.Record) []trace.Record { return nodes[:2] }, -1, true},
	} {
		tp := newTape(1)
		tp.function(0, trace.ModuleModule, "k", 8, 8)
		tp.alloc(a, 4096)
		tp.alloc(b, 4096)
		tp.phase("capture")
		tp.capture("decode", 1, base(tp)...)
		exec := tp.recs[len(tp.recs)-1].(*trace.Exec).Handle
		tp.capture("other", 1, row.change(tp, base(tp))...)
		tp.recs = tp.recs[:len(tp.recs)-1] // it is not instantiated
		tp.add(&trace.Update{Graph: tp.graph - 1, Handle: exec})
		tp.phase("ready")
		_, err := recording.Read(tp.file(t, true))
		var refused *recording.UpdateError
		if errors.As(err, &refused) != row.refused || !row.refused && err != nil {
			t.Errorf("%s: %v", row.name, err)
		} else if row.refused && (refused.Graph != "decode" || refused.Node != row.node) {
			t.Errorf("%s: %+v, want node %d", row.name, refused, row.node)
		}
	}
	tp := newTape(1)
	tp.function(0, trace.ModuleModule, "k", 8, 8)
	tp.capture("decode", 1, tp.kernel(0, a, 5))
	tp.add(&trace.Update{Graph: 0, Handle: 1234})
	if _, err := recording.Read(tp.file(t, true)); !errors.Is(err, recording.ErrDangling) {
		t.Errorf("update of an unknown executable graph: %v", err)
	}
}
