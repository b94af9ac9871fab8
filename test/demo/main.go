// Command demo runs the main job as a user would: it materializes the reference engine's graphs, starts the engine
// natively and restored, and decodes the same prompts with both at every batch size.
//
// In: a checkpoint and a device (simulated or cuda). Out: generated text, the stages of both starts, and one last line
// that begins with "demo: PASS" or "demo: FAIL". Its claims about the restored process are counted in that process's call
// log, which the device (or a counting preload) writes and Medusa does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
)

func main() {
	device := flag.String("device", "simulated", "simulated or cuda")
	model := flag.String("model", "", "checkpoint directory")
	build := flag.String("build", "build", "directory with the binaries")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	line, err := run(ctx, *device, *model, *build)
	if err != nil {
		fmt.Printf("demo: FAIL device=%s: %v\n", *device, err)
		os.Exit(1)
	}
	fmt.Println("demo: PASS " + line)
}

// steps says how many tokens each batch size decodes: 33 cross a page of the KV cache twice.
func steps(batch int) int {
	if slices.Contains([]int{1, 8, 64}, batch) {
		return 33
	}
	return 2
}

func run(ctx context.Context, device, model, build string) (string, error) {
	p, err := newPlayers(device, model, build)
	if err != nil {
		return "", err
	}
	artifact := filepath.Join(p.dir, "llama.medusa")
	fmt.Println("== medusa materialize: record, compile and verify the engine's graphs, once")
	if err := p.medusa(ctx, "materialize", "-o", artifact, "--", p.reference, "run", "--model", model, "--batches", "1"); err != nil {
		return "", err
	}
	fmt.Println("\n== the same prompts at every batch size, started natively and restored")
	native, err := p.decode(ctx, "native", p.workload())
	if err != nil {
		return "", err
	}
	restored, err := p.decode(ctx, "restored", append([]string{p.medusaPath, "restore", "--status", p.status, artifact, "--"}, p.workload()...))
	if err != nil {
		return "", err
	}
	fmt.Println("\n== text, from a restored engine")
	if err := p.medusa(ctx, "restore", artifact, "--", p.reference, "generate", "--model", model,
		"--max-tokens", "48", "--prompt", "In the beginning", "--prompt", "And the king said"); err != nil {
		return "", err
	}
	fmt.Println()
	printStages(os.Stdout, native.Stages, restored.Stages)
	counts, err := p.count(artifact, native, restored)
	if err != nil {
		return "", err
	}
	if err := sameTokens(native, restored); err != nil {
		return "", err
	}
	return counts, nil
}

// sameTokens compares the tokens of both starts, slot by slot.
func sameTokens(native, restored *decoded) error {
	if len(native.Runs) != len(restored.Runs) || len(native.Runs) == 0 {
		return fmt.Errorf("%d batch sizes decoded natively, %d restored", len(native.Runs), len(restored.Runs))
	}
	for i, n := range native.Runs {
		r := restored.Runs[i]
		if len(n.Tokens) != n.Batch || len(r.Tokens) != n.Batch || r.Batch != n.Batch {
			return fmt.Errorf("batch %d: %d sequences natively, %d restored", n.Batch, len(n.Tokens), len(r.Tokens))
		}
		for slot := range n.Tokens {
			if len(n.Tokens[slot]) != n.Steps+1 || !slices.Equal(n.Tokens[slot], r.Tokens[slot]) {
				return fmt.Errorf("batch %d slot %d: tokens %v natively, %v restored", n.Batch, slot, n.Tokens[slot], r.Tokens[slot])
			}
		}
	}
	return nil
}

var errNative = errors.New("the engine started natively")
