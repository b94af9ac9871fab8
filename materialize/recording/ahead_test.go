package recording_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"medusa/internal/test/bench"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
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
	var nodes []trace.Record
	for _, g := range r.Graphs {
		b, err := w.To(g)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !slices.Equal(before.NodeRecords, nodes) {
			t.Fatal("the graph before was dropped")
		}
		before, nodes = b, slices.Clone(b.NodeRecords)
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
