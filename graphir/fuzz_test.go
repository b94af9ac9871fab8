package graphir_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"medusa/graphir"
	"medusa/graphir/internal/randspec"
)

// FuzzDecode: exactly one of value and error; and what was decoded can be checked, printed and encoded again.
func FuzzDecode(f *testing.F) {
	for seed := range uint64(20) {
		data, err := graphir.Encode(randspec.New(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := graphir.Decode(data)
		if (s == nil) == (err == nil) {
			t.Fatalf("spec %v with error %v", s, err)
		}
		if err != nil {
			if !errors.Is(err, graphir.ErrCorrupt) && !errors.Is(err, graphir.ErrVersion) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if err := s.WriteText(io.Discard); err != nil {
			t.Fatal(err)
		}
		once, err := graphir.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := graphir.Decode(once)
		if err != nil || !graphir.Equal(s, again) {
			t.Fatalf("not the same after another round: %v", err)
		}
		if twice, err := graphir.Encode(again); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("encoding depends on its history: %v", err)
		}
	})
}
