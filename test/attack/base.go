package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"medusa/artifacts"
	"medusa/test/attack/mutate"
)

// base is an artifact that mutants come from, and the engine that it is for.
type base struct {
	name   string
	env    []string // of the engine
	path   string
	taken  *mutate.Artifact
	output string // of a native start
	region artifacts.Manifest
}

// variants of the test engine: each has objects in its artifact that the others lack.
var variants = []struct {
	name string
	env  []string
}{
	{"plain", nil},
	{"caching", []string{"ZOO_ALLOCATOR=caching"}},
	{"events", []string{"ZOO_EVENTS=1", "ZOO_LATE=written"}},
	{"named", []string{"ZOO_METADATA=named"}},
}

// makeBases materializes the engine's variants.
func (a *attacker) makeBases(ctx context.Context) error {
	chosen := variants
	if a.n < 1000 {
		chosen = chosen[:2]
	}
	for _, v := range chosen {
		b := &base{name: v.name, env: v.env, path: filepath.Join(a.dir, v.name+artifacts.Suffix)}
		p, err := a.newPlace()
		if err != nil {
			return err
		}
		e, err := p.run(ctx, v.env, "zoo")
		if err != nil {
			return err
		}
		if b.output, err = outputOf(e.stdout); err != nil {
			return fmt.Errorf("start %s natively: %w\n%s", v.name, err, e.stderr)
		}
		if e, err = p.run(ctx, v.env, "medusa", "materialize", "-o", b.path, "--", filepath.Join(a.build, "zoo")); err != nil {
			return err
		} else if e.code != 0 {
			return fmt.Errorf("materialize %s: exit %d\n%s", v.name, e.code, e.stderr)
		}
		file, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		if b.taken, err = mutate.Open(file); err != nil {
			return err
		}
		m, err := artifacts.ReadManifest(b.path)
		if err != nil {
			return err
		}
		b.region = *m
		a.bases = append(a.bases, b)
		if err := os.RemoveAll(p.dir); err != nil {
			return err
		}
	}
	return nil
}

// mutant returns the i-th mutant of the run. Another folder changes only its paths.
func (a *attacker) mutant(i int, outside string) (b *base, file []byte, what string, err error) {
	b = a.bases[i%len(a.bases)]
	file, what, err = b.taken.Mutant(rand.New(rand.NewPCG(a.seed, uint64(i))), outside)
	return b, file, fmt.Sprintf("mutant %d of %s (%s)", i, b.name, what), err
}

// outputOf returns the output of an engine that served.
func outputOf(stdout string) (string, error) {
	var result struct{ Output string }
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.Output == "" {
		return "", fmt.Errorf("read engine's output %.100q: %w", stdout, err)
	}
	return result.Output, nil
}
