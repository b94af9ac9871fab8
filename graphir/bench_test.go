package graphir_test

import (
	"testing"

	"medusa/graphir"
	"medusa/test/randspec"
)

// modelSpec is a 7B-class model: 35 graphs of 356 nodes.
func modelSpec(t testing.TB) (*graphir.Spec, []byte) {
	s := randspec.Model(35, 32)
	data, err := graphir.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, data
}

func TestModelIsSmall(t *testing.T) {
	s, data := modelSpec(t)
	got, err := graphir.Decode(data)
	if err != nil || !graphir.Equal(s, got) {
		t.Fatalf("not the same after a round: %v", err)
	}
	if len(data) >= 1_000_000 {
		t.Errorf("%d graphs of %d nodes take %d bytes", len(s.Graphs), len(s.Graphs[0].Nodes), len(data))
	}
}

func BenchmarkEncode(b *testing.B) {
	s, data := modelSpec(b)
	for b.Loop() {
		if _, err := graphir.Encode(s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(data)), "encoded-bytes")
}

func BenchmarkDecode(b *testing.B) {
	_, data := modelSpec(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := graphir.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(data)), "encoded-bytes")
}

func BenchmarkValidate(b *testing.B) {
	s, _ := modelSpec(b)
	for b.Loop() {
		if err := s.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}
