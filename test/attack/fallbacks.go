package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"medusa/restore/status"
)

// spoilt is an artifact with which a start comes far, and has to fall back.
type spoilt struct {
	name string
	make func(b *base) ([]byte, error)
	env  string // makes it fall back, if the artifact does not
}

// fallbacks restores artifacts that could have done harm by the time that the start falls back. Some give the engine another KV
// cache than the recorded one: too small for its graphs, just large enough, and larger. Others bring contents for the engine's own
// memory, and the engine cannot use the graphs once all contents are in place.
func fallbacks(ctx context.Context, a *attacker) error {
	counts := map[string]int{}
	sizes, places := []uint64{1, 4095, 4096, 8191, 8192, 1 << 20, 16 << 20}, 8
	if a.n < 1000 {
		sizes, places = []uint64{4095, 8192}, 2
	}
	var all []spoilt
	for _, size := range sizes {
		all = append(all, spoilt{fmt.Sprintf("KV cache of %d bytes", size), func(b *base) ([]byte, error) { return b.taken.SmallCache(size) }, ""})
	}
	for i := range places {
		all = append(all, spoilt{fmt.Sprintf("content for allocation %d of the engine's", i),
			func(b *base) ([]byte, error) { return b.taken.IntoEngine(i) }, "ZOO_REFUSES=1"})
	}
	for _, x := range all {
		how, err := a.fallBack(ctx, x)
		if err != nil {
			return err
		}
		counts[how]++
	}
	a.try(len(all))
	a.line("late fallbacks", counts)
	return nil
}

// fallBack starts with one of them. It has to be served natively.
func (a *attacker) fallBack(ctx context.Context, x spoilt) (string, error) {
	p, err := a.newPlace()
	if err != nil {
		return "", err
	}
	b := a.bases[0]
	file, err := x.make(b)
	if err != nil {
		return "", err
	}
	path, report := filepath.Join(p.out, "spoilt.medusa"), filepath.Join(p.out, "status")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		return "", err
	}
	env := b.env
	if x.env != "" {
		env = append([]string{x.env}, env...)
	}
	e, err := p.run(ctx, env, "medusa", "restore", "--status", report, path, "--", filepath.Join(a.build, "zoo"))
	if err != nil {
		return "", err
	}
	st, _ := status.Read(report)
	how := a.judge(b, x.name, e, st)
	if how != asNative {
		a.found(unserved, x.name, "%s: %s", how, lastLine(e.stderr))
	}
	return how, p.close(a.tally, x.name)
}
