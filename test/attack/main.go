// Command attack treats Medusa as an attacker would who wants its user's machine: with artifacts, traces, archives,
// registries, kills and full disks that are made to be accepted and to do harm.
//
// In: the built binaries and the simulated GPU; a seed, which decides everything but the moments of kills. Out: counts of the
// stages that each kind of attack reached, a line for each finding, and last
//
//	attack: N tried, 0 panics, 0 files outside, 0 accepted under a policy, 0 wrong after fallback, 0 left behind
//
// It makes no hostile images: simgpu/test/image_fuzz.c, which make attack runs first, damages the images that the C readers
// get.
//
// Fails: with status 1 if one of these numbers, or that of any other finding, is not 0, or if too few mutants reached the
// rebuilding of graphs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if dir := os.Getenv(compileVariable); dir != "" {
		compileAndExit(dir)
	}
	o := options{}
	flag.IntVar(&o.n, "n", 20000, "mutants of artifacts; a twentieth of them is restored live, a hundredth as many traces and kills")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of all mutants")
	flag.StringVar(&o.build, "build", "build", "directory with the binaries under attack")
	only := flag.String("only", "", "kinds of attacks, separated by commas; empty: all")
	flag.BoolVar(&o.verbose, "v", false, "print each mutant and how it ended")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := &tally{out: os.Stdout}
	if err := attack(ctx, o, t); err != nil {
		fmt.Fprintf(os.Stderr, "attack: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(t.last())
	if t.failed() {
		os.Exit(1)
	}
}

type options struct {
	n       int
	seed    uint64
	build   string
	only    []string
	verbose bool
}

// kind is one kind of attack.
type kind struct {
	name string
	run  func(context.Context, *attacker) error
}

var kinds = []kind{
	{"stages", stages}, {"live", live}, {"fallbacks", fallbacks}, {"traces", traces}, {"archives", archives}, {"registry", registry}, {"policy", policy},
	{"environment", environment}, {"screens", screens}, {"kills", kills}, {"disks", disks},
}

// attacker is the state that the kinds of attacks share.
type attacker struct {
	options
	*tally
	dir    string
	bases  []*base
	ranked []int // mutants that reached the rebuilding of graphs
}

// attack tries every kind of attack that the options ask for.
func attack(ctx context.Context, o options, t *tally) error {
	dir, err := os.MkdirTemp("", "attack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a, err := newAttacker(ctx, o, t, dir)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if len(o.only) > 0 && !slices.Contains(o.only, k.name) {
			continue
		}
		if err := k.run(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// newAttacker makes the artifacts that mutants come from.
func newAttacker(ctx context.Context, o options, t *tally, dir string) (*attacker, error) {
	var err error
	if o.build, err = filepath.Abs(o.build); err != nil {
		return nil, err
	}
	fmt.Fprintf(t.out, "attack: SEED=%d N=%d\n", o.seed, o.n)
	a := &attacker{options: o, tally: t, dir: dir}
	return a, a.makeBases(ctx)
}

// share returns that part of n which an attack that takes long gets, and at least some.
func (a *attacker) share(part, least int) int { return max(a.n/part, least) }
