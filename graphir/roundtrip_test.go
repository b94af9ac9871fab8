package graphir_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"medusa/graphir"
	"medusa/test/randspec"
)

// reread encodes and decodes a Spec.
func reread(t testing.TB, s *graphir.Spec) *graphir.Spec {
	t.Helper()
	data, err := graphir.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := graphir.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRoundTrip(t *testing.T) {
	calls := 0
	for seed := range uint64(500) {
		want := randspec.New(seed)
		for i := range want.Graphs {
			if want.HasCollectives(i) {
				calls++
			}
		}
		data, err := graphir.Encode(want)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := graphir.Decode(data)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !graphir.Equal(want, got) || seed < 50 {
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: decoded spec differs (-want +got):\n%s", seed, diff)
			}
		}
		again, err := graphir.Encode(got)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("seed %d: encoded again: %d bytes instead of %d, %v", seed, len(again), len(data), err)
		}
	}
	if calls < 100 {
		t.Errorf("%d graphs with collective calls", calls)
	}
}

func TestRoundTripDetached(t *testing.T) {
	for seed := range uint64(100) {
		want := randspec.New(seed)
		sections, err := graphir.EncodeDetached(want, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		store := map[[32]byte][]byte{}
		for _, b := range sections.Blobs {
			if store[b.SHA256] != nil {
				t.Fatalf("seed %d: blob %x twice", seed, b.SHA256)
			}
			store[b.SHA256] = b.Data
		}
		got, err := graphir.DecodeDetached(sections.Graph, sections.Buffers, graphir.Source{Blob: func(sum [32]byte, _ uint64) ([]byte, error) { return store[sum], nil }})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !graphir.Equal(want, got) {
			t.Fatalf("seed %d: decoded spec differs: %s", seed, cmp.Diff(want, got, cmpopts.EquateEmpty()))
		}
		alone, err := graphir.DecodeDetached(sections.Graph, nil, graphir.Source{})
		if err != nil || len(alone.Contents)+len(alone.Tensors) != 0 {
			t.Fatalf("seed %d: graphs alone: %v", seed, err)
		}
		for i := range got.Triggers {
			got.Triggers[i].Launches = 0
		}
		bare(got)
		if !graphir.Equal(got, alone) {
			t.Fatalf("seed %d: graphs alone differ: %s", seed, cmp.Diff(got, alone, cmpopts.EquateEmpty()))
		}
	}
}

// bare clears everything that the buffer section stores, except launches.
func bare(s *graphir.Spec) {
	s.Contents, s.Tensors, s.Notes, s.Images, s.Region = nil, nil, nil, nil, graphir.Region{}
	for i := range s.Allocations {
		s.Allocations[i].Address = 0
	}
}

// Only values that determine the graphs are in the graph section; marks of engines and measurements of verification are not.
func TestGraphSectionHoldsGraphsOnly(t *testing.T) {
	for seed := range uint64(100) {
		s := randspec.New(seed)
		all, err := graphir.EncodeDetached(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		bare(s)
		for i := range s.Triggers {
			s.Triggers[i].Launches++
		}
		without, err := graphir.EncodeDetached(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(all.Graph, without.Graph) {
			t.Fatalf("seed %d: %d bytes of graph section became %d", seed, len(all.Graph), len(without.Graph))
		}
	}
}

func TestEqual(t *testing.T) {
	if a, b := handmade(), handmade(); !graphir.Equal(a, b) {
		t.Fatal("a spec does not equal its like")
	}
	empty := handmade()
	empty.Contents[0].Unstable = []graphir.Range{}
	if !graphir.Equal(empty, handmade()) {
		t.Error("an empty list does not equal none")
	}
	for i, change := range []func(s *graphir.Spec){
		func(s *graphir.Spec) { s.Allocations[0].Size++ },
		func(s *graphir.Spec) { s.Graphs[1].Nodes[0].Kernel().Params[11]++ },
		func(s *graphir.Spec) { s.Graphs[1].Nodes[0].Params = nil },
		func(s *graphir.Spec) { s.Graphs[1].Nodes[0].Kernel().Attrs[0].Value[63]++ },
		func(s *graphir.Spec) { s.Graphs = s.Graphs[:1] },
		func(s *graphir.Spec) { s.Tensors[0].Distinct = false },
		func(s *graphir.Spec) { s.Tensors[1].Graphs = []uint32{1} },
		func(s *graphir.Spec) { s.Notes = []graphir.Note{{Name: "output"}} },
	} {
		s := handmade()
		change(s)
		if graphir.Equal(s, handmade()) || graphir.Equal(handmade(), s) {
			t.Errorf("change %d goes unnoticed", i)
		}
	}
}
