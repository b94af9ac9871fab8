package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"medusa/restore/status"
)

// caches restores artifacts whose profile gives the engine another KV cache than the recorded one: too small for its graphs, just
// large enough, and larger than what was recorded. The engine has made it by the time that the start falls back.
func caches(ctx context.Context, a *attacker) error {
	counts := map[string]int{}
	sizes := []uint64{1, 4095, 4096, 8191, 8192, 1 << 20, 16 << 20}
	if a.n < 1000 {
		sizes = []uint64{4095, 8192}
	}
	for _, size := range sizes {
		p, err := a.newPlace()
		if err != nil {
			return err
		}
		b := a.bases[0]
		file, err := b.taken.SmallCache(size)
		if err != nil {
			return err
		}
		path, report := filepath.Join(p.out, "cache.medusa"), filepath.Join(p.out, "status")
		if err := os.WriteFile(path, file, 0o644); err != nil {
			return err
		}
		e, err := p.run(ctx, b.env, "medusa", "restore", "--status", report, path, "--", filepath.Join(a.build, "zoo"))
		if err != nil {
			return err
		}
		where := fmt.Sprintf("KV cache of %d bytes", size)
		st, _ := status.Read(report)
		how := a.judge(b, where, e, st)
		if how != asNative {
			a.found(unserved, where, "%s: %s", how, lastLine(e.stderr))
		}
		counts[how]++
		if err := p.close(a.tally, where); err != nil {
			return err
		}
	}
	a.try(len(sizes))
	a.line("other KV caches", counts)
	return nil
}
