package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"medusa/restore/status"
)

// live restores mutants, each in an engine of its own, and compares the output with that of a native start. Most of these
// mutants got as far as graphs are rebuilt. Every third start runs out of memory when its graphs are made: by then all
// contents are in place, and the engine has to serve natively from memory that is its own.
func live(ctx context.Context, a *attacker) error {
	n := a.share(20, 10)
	counts := map[string]int{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for k := range n {
		i := k // any mutant
		if k%5 != 0 && len(a.ranked) > 0 {
			i = a.ranked[k*len(a.ranked)/n]
		}
		group.Go(func() error {
			how, err := a.restoreLive(ctx, i, k%3 == 2)
			mu.Lock()
			defer mu.Unlock()
			counts[how]++
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.try(n)
	a.line("live restores", counts)
	return nil
}

const noMemory = "SIMGPU_FAIL=cuGraphInstantiateWithFlags:1:CUDA_ERROR_OUT_OF_MEMORY"

// restoreLive restores one mutant, and says how that ended.
func (a *attacker) restoreLive(ctx context.Context, i int, fail bool) (string, error) {
	p, err := a.newPlace()
	if err != nil {
		return "", err
	}
	b, file, what, err := a.mutant(i, p.outside)
	if err != nil {
		return "", err
	}
	env := b.env
	if fail {
		env = append([]string{noMemory}, env...)
		what += ", out of memory"
	}
	path, report := filepath.Join(p.out, "mutant.medusa"), filepath.Join(p.out, "status")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		return "", err
	}
	e, err := p.run(ctx, env, "medusa", "restore", "--status", report, path, "--", filepath.Join(a.build, "zoo"))
	if err != nil {
		return "", err
	}
	st, _ := status.Read(report)
	how := a.judge(b, what, e, st)
	if a.verbose {
		fmt.Fprintf(a.out, "%s: %s\n", how, what)
	}
	return how, p.close(a.tally, what)
}

// How a live restore ends.
const (
	asNative = "native with right outputs"
	restored = "restored with right outputs"
	forged   = "accepted unsigned forgeries (restored, other outputs)"
	refused  = "refused (the engine did not start)"
	broken   = "broken"
)

// judge says how a start dealt with a mutant, and notes forbidden outcomes.
func (a *attacker) judge(b *base, what string, e *ended, st *status.Status) string {
	if text := panicked(e.stderr); text != "" {
		a.found(panics, what, "%s", text)
		return broken
	}
	output, err := outputOf(e.stdout)
	right := err == nil && e.code == 0 && output == b.output
	switch {
	case st != nil && st.Status == status.Restored && right:
		return restored
	case st != nil && st.Status == status.Restored:
		return forged // an artifact without a signature can hold a graph that hangs or fails
	case e.late:
		a.found(hang, what, "no end in %v: %s", patience, lastLine(e.stderr))
		return broken
	case right:
		return asNative
	case err == nil:
		a.found(wrong, what, "%s", lastLine(e.stderr))
		return broken
	case st != nil && st.Status == status.Native:
		a.found(wrong, what, "native, but the engine failed: %s", lastLine(e.stderr))
		return broken
	}
	return refused
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1]
	return line[:min(len(line), 200)]
}
