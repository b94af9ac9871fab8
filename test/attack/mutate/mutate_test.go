package mutate_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/test/attack/mutate"
	"medusa/test/testenv"
)

func golden(t testing.TB) (*mutate.Artifact, string) {
	t.Helper()
	path := testenv.Path(t, "artifacts", "testdata", "v2.medusa")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := mutate.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return a, path
}

// An artifact reads as before if only a bundled directory is added: so mutants are refused because of their change.
func TestResealed(t *testing.T) {
	a, path := golden(t)
	want, err := artifacts.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	data, size, files := mutate.Pack(mutate.Entry{Name: "x", Data: "y", Mode: 0o644})
	file, err := a.Bundled("jit", "/somewhere", data, size, files)
	if err != nil {
		t.Fatal(err)
	}
	sealed := filepath.Join(t.TempDir(), "x.medusa")
	if err := os.WriteFile(sealed, file, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := artifacts.Check(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if !graphir.Equal(got.Spec, want.Spec) || got.Identity.Digest() != want.Identity.Digest() || len(got.Directories) != 1 {
		t.Error("another artifact")
	}
}

// A seed decides all of a mutant, and leaves the original as it is.
func TestSeedDecides(t *testing.T) {
	a, _ := golden(t)
	different := 0
	for seed := range uint64(100) {
		one, what, err := a.Mutant(rand.New(rand.NewPCG(seed, 0)), "/outside")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := golden(t)
		two, again, err := b.Mutant(rand.New(rand.NewPCG(seed, 0)), "/outside")
		if err != nil || !bytes.Equal(one, two) || what != again {
			t.Fatalf("seed %d: %s, then %s, %v", seed, what, again, err)
		}
		if next, _, err := a.Mutant(rand.New(rand.NewPCG(seed+1, 0)), "/outside"); err != nil || !bytes.Equal(one, next) {
			different++
		}
	}
	if different < 90 {
		t.Errorf("only %d of 100 mutants differ from the next", different)
	}
}
