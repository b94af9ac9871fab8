// Command ranks shows that engines of several worker processes are restored with collective calls in their graphs.
//
// In: the files that make built. Out: a line for each case, and as the last one what was compared. Fails: with exit status 1 if outputs of a restored
// start differ from the native ones, or if a control is not noticed.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	graphs      = 3          // of a rank
	collectives = 2 * graphs // of a rank
	limit       = 90 * time.Second
)

type outcome struct {
	how, tokens string // by rank, sorted
	stderr      string
	err         error
}

// run starts the engine, or a command before it, and sorts its lines by rank.
func run(env []string, command ...string) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), "SIMGPU_LOG=/dev/null"), env...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	o := outcome{err: cmd.Run()}
	if ctx.Err() != nil {
		o.err = fmt.Errorf("not done after %s", limit)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	slices.Sort(lines)
	for _, line := range lines {
		if f := strings.Fields(line); len(f) > 3 {
			o.how += f[2] + " "
			o.tokens += strings.Join(f[3:], " ") + "\n"
		}
	}
	o.stderr = stderr.String()
	return o
}

func main() {
	if err := all(); err != nil {
		fmt.Fprintf(os.Stderr, "test-ranks: FAIL: %v\n", err)
		os.Exit(1)
	}
}

func all() error {
	dir, err := os.MkdirTemp("", "ranks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ran := 0
	for _, n := range []int{2, 4} {
		if err := ranks(n, filepath.Join(dir, fmt.Sprintf("%d.medusa", n))); err != nil {
			return fmt.Errorf("%d ranks: %w", n, err)
		}
		ran += n
	}
	fmt.Printf("test-ranks: PASS device=simulated ranks=2,4 graphs=%d collectives=%d differences=0\n", ran*graphs, ran*collectives)
	return nil
}

func ranks(n int, artifact string) error {
	engine, medusa := "build/ranks", "build/medusa"
	env := []string{fmt.Sprintf("RANKS_WORKERS=%d", n)}
	native := run(env, engine)
	if native.err != nil || native.how != strings.Repeat("captured ", n) {
		return fmt.Errorf("native start: %v, %s\n%s", native.err, native.how, native.stderr)
	}
	if made := run(env, medusa, "materialize", "-o", artifact, "--", engine); made.err != nil {
		return fmt.Errorf("materialize: %v\n%s", made.err, made.stderr)
	}
	for _, addresses := range []string{"exact", "relocate"} {
		got := run(env, medusa, "restore", "--addresses", addresses, "--check", "full", artifact, "--", engine)
		if got.err != nil || got.how != strings.Repeat("restored ", n) || got.tokens != native.tokens {
			return fmt.Errorf("restored start (%s): %v, %s, tokens as native: %v\n%s", addresses, got.err, got.how, got.tokens == native.tokens, got.stderr)
		}
		fmt.Printf("%d ranks, %s: all restored, tokens as native\n", n, addresses)
	}
	// What is wrong on one rank is seen by a check before ready, or stops the engine: it never serves other tokens.
	for _, how := range []string{"peer", "leave-out", "exchange", "error", "death", "error-early", "death-early", "death-late"} {
		began := time.Now()
		got := run(append(env, "RANKS_BREAK="+how, "NCCL_STANDIN_SECONDS=5"), medusa, "restore", "--check", "full", artifact, "--", engine)
		served := got.err == nil && got.tokens == native.tokens && got.how == strings.Repeat("captured ", n)
		fmt.Printf("%d ranks, %s on rank 1: %s after %.1f s\n", n, how, map[bool]string{true: "all native", false: "no engine"}[served], time.Since(began).Seconds())
		if got.tokens != "" && !served || strings.Contains(got.how, "restored") || time.Since(began) > limit {
			return fmt.Errorf("%s: %v, %s\n%s", how, got.err, got.how, got.stderr)
		}
	}
	return nil
}
