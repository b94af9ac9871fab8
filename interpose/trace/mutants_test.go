package trace_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"medusa/interpose/trace"
	"medusa/test/attack/mutate"
)

// FuzzMutants changes traces inside their records and fixes the checksums. Reading them ends with records or with a typed error.
func FuzzMutants(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	records := []trace.Record{
		&trace.Process{PID: 1, Exe: "/engine", Args: []string{"a", "b"}}, &trace.Device{Name: "GPU", TotalMem: 1 << 30}, &trace.Phase{Name: "warmup"},
		&trace.Alloc{Kind: 1, Addr: 4096, Size: 64}, &trace.Alloc{ID: 1, Kind: 1, Addr: 8192, Size: 64}, &trace.Free{ID: 1, Kind: 1, Addr: 8192},
		&trace.Module{ID: 1, Handle: 9}, &trace.Names{Module: 1, Names: []string{"k"}}, &trace.Function{ID: 2, Handle: 5, Module: 1, Name: "k"},
		&trace.Graph{ID: 3, Handle: 7, Label: "g", Batch: 1, Nodes: 2, Edges: 1},
		&trace.Kernel{Graph: 3, Node: 1, Function: 2, Grid: []uint32{1, 1, 1}, Block: []uint32{1, 1, 1}, Params: make([]byte, 16)},
		&trace.Empty{Graph: 3, Node: 2}, &trace.Edge{Graph: 3, From: 1, To: 2}, &trace.Exec{Graph: 3, Handle: 8},
		&trace.Tensor{Name: "t", Addr: 4096, Size: 64, Shape: []int64{16}}, &trace.Phase{Name: "ready"}, &trace.Content{Data: make([]byte, 64)},
		&trace.End{},
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		data, what, err := mutate.Trace(records, rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := trace.NewReader("mutant", bytes.NewReader(data), int64(len(data)))
		for err == nil {
			_, err = r.Next()
		}
		if at := (*trace.Error)(nil); !errors.Is(err, io.EOF) && !errors.As(err, &at) {
			t.Fatalf("%s: untyped error %v", what, err)
		}
	})
}
