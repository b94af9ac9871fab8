package recording_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"medusa/interpose/trace"
	"medusa/materialize/recording"
	"medusa/test/bench"
)

func recorded(t *testing.T, graphs int) *recording.Recording {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	if err := bench.Foundry(graphs).WriteTrace(path, 0); err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A caller works on a graph while the walk reads the next one.
func TestGraphInUse(t *testing.T) {
	r := recorded(t, 3)
	w, err := r.Walk()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var before *recording.Body
	var nodes string
	for _, g := range r.Graphs {
		b, err := w.To(g)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && text(before) != nodes {
			t.Fatal("the graph before was dropped")
		}
		before, nodes = b, text(b)
	}
}

// text prints a graph's nodes and edges.
func text(b *recording.Body) string {
	var out strings.Builder
	for _, n := range b.NodeRecords {
		fmt.Fprintf(&out, "%T%+v", n, n)
	}
	for _, e := range b.EdgeRecords {
		fmt.Fprintf(&out, "%+v", e)
	}
	return out.String()
}

// Graphs are read into the memory of those that were dropped, and equal the graphs of the trace.
func TestMemoryOfDroppedGraphs(t *testing.T) {
	r := recorded(t, 5)
	records, err := trace.ReadAll(r.Path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32]*recording.Body{}
	for _, rec := range records {
		switch v := rec.(type) {
		case *trace.Graph:
			want[v.ID] = &recording.Body{}
		case *trace.Edge:
			want[v.Graph].EdgeRecords = append(want[v.Graph].EdgeRecords, v)
		case trace.NodeRecord:
			graph, _ := v.Place()
			want[graph].NodeRecords = append(want[graph].NodeRecords, rec)
		}
	}
	w, err := r.Walk()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i, g := range r.Graphs {
		got, err := w.To(g)
		if err != nil {
			t.Fatal(err)
		}
		if text(got) != text(want[g.ID]) {
			t.Errorf("graph %d has not what was recorded", i)
		}
	}
}

func TestAhead(t *testing.T) {
	r := recorded(t, 5)
	w, err := r.Walk()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a, err := r.Ahead(r.Graphs)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range r.Graphs {
		want, errWant := w.To(g)
		got, errGot := a.Next()
		if errWant != nil || errGot != nil {
			t.Fatal(errWant, errGot)
		}
		if got.Capture != g || !reflect.DeepEqual(got.NodeRecords, want.NodeRecords) || !reflect.DeepEqual(got.EdgeRecords, want.EdgeRecords) {
			t.Errorf("graph %d differs", i)
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	// One that is closed early reads no further, and one that asks for a graph that is not there says so.
	if a, err = r.Ahead(r.Graphs); err != nil || a.Close() != nil {
		t.Error(err)
	}
	if a, err = r.Ahead([]*recording.Capture{r.Graphs[1], r.Graphs[0]}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Next(); err != nil {
		t.Error(err)
	}
	if _, err := a.Next(); err == nil {
		t.Error("a graph that lies before the one that was read is found")
	}
}
