package artifacts

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"medusa/test/attack/mutate"
	"medusa/test/testmem"
)

// FuzzMutants changes artifacts inside their messages and fixes the digests. Read returns either a value or a typed error, and
// its memory stays bounded.
func FuzzMutants(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed))
	}
	var bases []*mutate.Artifact
	for _, path := range []string{"testdata/v1.medusa", "testdata/v2.medusa"} {
		file, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		base, err := mutate.Open(file)
		if err != nil {
			f.Fatal(err)
		}
		bases = append(bases, base)
	}
	f.Fuzz(func(t *testing.T, seed uint64, base uint8) {
		data, what, err := bases[int(base)%len(bases)].Mutant(rand.New(rand.NewPCG(seed, 1)), "/outside")
		if err != nil {
			t.Fatal(err)
		}
		var a *Artifact
		testmem.Bounded(t, len(data), func() { a, err = readBytes(data) })
		if (a == nil) == (err == nil) {
			t.Fatalf("%s: artifact %v with error %v", what, a, err)
		}
		if err != nil && !isCorrupt(err) && !errors.Is(err, ErrVersion) {
			t.Fatalf("%s: untyped error %v", what, err)
		}
	})
}
