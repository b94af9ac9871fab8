package interpose

import (
	"bytes"
	"slices"
	"testing"

	"medusa/interpose/trace"
)

// Nodes and parameters that refer to objects outside of their graph. Each is recorded by a name that is valid in another process.
// If it has no such name, the node is opaque.
func TestWhatLiesOutsideOfGraphs(t *testing.T) {
	for name, args := range map[string][]string{"allowed": nil, "forbidden": {"forbidden"}} {
		t.Run("process_vm_readv "+name, func(t *testing.T) { whatLiesOutside(t, args...) })
	}
}

func whatLiesOutside(t *testing.T, args ...string) {
	t.Helper()
	recs, r := record(t, Config{}, 0, simulated(t), append([]string{build(t, "build/test/outside")}, args...)...)
	p := printed(t, r)

	events := of[*trace.Event](recs)
	if len(events) != 2 || events[0].Flags != 0 || events[0].Steps != 0 || events[1].Flags != 2 || events[1].Steps != 1 {
		t.Errorf("events %+v, want two, the second behind one allocation", events)
	}
	if gone := of[*trace.EventGone](recs); len(gone) != 1 || gone[0].ID != 0 {
		t.Errorf("ended events %+v, want the first", gone)
	}
	nodes := of[*trace.EventNode](recs)
	if len(nodes) != 2 || nodes[0].Record != 0 || nodes[1].Record != 1 || nodes[0].Event != 1 || nodes[1].Event != 1 {
		t.Errorf("event nodes %+v, want a wait and a record of event 1", nodes)
	}
	if o := of[*trace.Opaque](recs); len(o) != 1 || o[0].Type != 7 {
		t.Errorf("opaque nodes %+v, want the record of the trigger scope's event", o)
	}

	graphs, children := of[*trace.Graph](recs), of[*trace.Child](recs)
	if len(graphs) != 2 || len(children) != 1 || children[0].Child != graphs[0].ID || children[0].Graph != graphs[1].ID || graphs[1].Label != "outside" || graphs[1].Batch != 3 {
		t.Errorf("graphs %+v, children %+v: want the embedded graph before the labelled one", graphs, children)
	}

	host := of[*trace.HostData](recs)
	if len(host) != 2 || !bytes.Equal(host[0].Data, []byte{1, 2, 3, 4, 17, 18, 19, 20}) {
		t.Errorf("host data %+v, want the two rows that the copy reads", host)
	}
	if c := of[*trace.HostChanged](recs); len(c) != 1 || c[0].Node != p["changed"] {
		t.Errorf("changed host memory %+v, want that of the second copy", c)
	}

	maps, moved := of[*trace.TensorMap](recs), of[*trace.TensorMoved](recs)
	if len(maps) != 1 || len(moved) != 1 {
		t.Fatalf("%d tensor maps, %d moved, want one each", len(maps), len(moved))
	}
	m := maps[0]
	if m.Addr != p["p"] || m.Tiled != 1 || m.Swizzle != 2 || !slices.Equal(m.Dim, []uint64{64, 2}) || !slices.Equal(m.Strides, []uint64{256}) ||
		!slices.Equal(m.Box, []uint32{16, 1}) || !slices.Equal(m.Steps, []uint32{1, 1}) || len(m.Map) != 128 {
		t.Errorf("tensor map %+v", m)
	}
	if !bytes.Equal(moved[0].Before, m.Map) || bytes.Equal(moved[0].After, m.Map) || moved[0].Addr != p["p"]+1024 {
		t.Errorf("moved tensor map %+v", moved[0])
	}

	if g := of[*trace.Global](recs); len(g) != 1 || g[0].Addr != p["counter"] || g[0].Size != 16 || g[0].Managed != 0 {
		t.Errorf("variables %+v", g)
	}
	want := []byte{9, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}
	if d := of[*trace.GlobalData](recs); len(d) != 1 || d[0].Name != "counter" || !bytes.Equal(d[0].Data, want) {
		t.Errorf("contents of variables %+v, want %v", d, want)
	}
}
