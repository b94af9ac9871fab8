// Command mutants switches mechanisms off one at a time, in a copy of the tree, and demands that the test named beside each
// fails. A comment "mutant: name" in the code marks the statement that a mechanism depends on; a row of the tables says how
// the statement changes, and which test has to notice. With -relocations it moves random pointers of an artifact instead, and
// demands that verification rejects each.
//
// In: the tracked files of the repository. Out: one line a mutant, and last "mutants: N caught: N crashed: C timed out: T".
// Caught means that the named test reported it; a crash of its process counts apart. Fails: if a row does not match the code, a
// mutant does not build, or its test does not pass without it, passes with it, or hangs.
//
// Verdicts are kept in build/mutants/results.json, each with a key of all that it depends on: the row, this program, the compilers, and
// the files of the tree that it was made in. A later run, or one after an interruption, tries only rows whose key is another. The
// last line but one says how many were taken, and of which commits. -fresh forgets the file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"golang.org/x/sync/errgroup"
)

func main() {
	only := flag.String("run", "", "only mutants whose line, as printed, matches this regular expression")
	fresh := flag.Bool("fresh", false, "forget verdicts of earlier runs")
	relocations := flag.Int("relocations", 0, "move this many random pointers instead")
	seed := flag.Uint64("seed", rand.Uint64(), "of the pointers moved")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *relocations > 0 {
		build, err := filepath.Abs("build")
		if err == nil {
			err = moveRelocations(ctx, *relocations, *seed, build)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "relocations: seed %d: %v\n", *seed, err)
			os.Exit(1)
		}
		return
	}
	counts, total, err := run(ctx, *only, *fresh)
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("mutants: %d caught: %d crashed: %d timed out: %d\n", total, counts[caught], counts[crashed], counts[timedOut])
	if counts[caught]+counts[crashed] != total {
		os.Exit(1)
	}
}

// workers is how many mutants are tried at once, each in copies of its own.
const workers = 2

// kept is the file of verdicts.
const kept = "build/mutants/results.json"

func run(ctx context.Context, only string, fresh bool) (counts map[verdict]int, total int, err error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, 0, fmt.Errorf("read -run: %w", err)
	}
	in, err := readInputs(ctx, ".")
	if err != nil {
		return nil, 0, err
	}
	commit, err := head(ctx, ".")
	if err != nil {
		return nil, 0, err
	}
	r := &runner{in: in}
	if r.markers, err = findMarkers("."); err != nil {
		return nil, 0, err
	}
	if r.store, err = openStore(kept, commit, fresh); err != nil {
		return nil, 0, err
	}
	rows := make(chan *mutant)
	results := make(chan verdict)
	var work errgroup.Group
	for range workers {
		work.Go(func() (err error) {
			copies, err := newTrees(in)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, copies.remove()) }()
			for m := range rows {
				if v := r.report(ctx, m, copies); ctx.Err() == nil {
					results <- v
				}
			}
			return ctx.Err()
		})
	}
	go func() {
		defer close(rows)
		for _, m := range all() {
			if wanted.MatchString(m.String()) && ctx.Err() == nil {
				rows <- &m
			}
		}
	}()
	done := make(chan error)
	go func() { done <- work.Wait() }()
	counts = map[verdict]int{}
	for {
		select {
		case v := <-results:
			total++
			counts[v]++
		case err := <-done:
			if err == nil {
				fmt.Println(r.store.summary(total))
			}
			return counts, total, err
		}
	}
}

// runner is the state that the workers share.
type runner struct {
	in      *inputs
	markers map[string]marker
	store   *store
	before  baseline
}

// report finds out the mutant's fate and prints it, unless the run was interrupted.
func (r *runner) report(ctx context.Context, m *mutant, copies *trees) verdict {
	v, err := r.judge(ctx, m, copies)
	if ctx.Err() != nil {
		return broken
	}
	if err != nil {
		v = broken
		fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", m, err)
	}
	fmt.Printf("%-9s %s\n", v, m)
	return v
}

// judge takes the verdict from the store, or tries the mutant in the first scope that its test passes in without it. A mutant that
// a small scope misses is tried in the next: a test may look at less if there are no programs.
func (r *runner) judge(ctx context.Context, m *mutant, copies *trees) (v verdict, err error) {
	scopes, err := r.in.scopes(ctx, m)
	if err != nil {
		return broken, err
	}
	var keys []string
	for _, s := range scopes {
		keys = append(keys, s.key(m))
	}
	if v, ok := r.store.take(m.String(), keys...); ok {
		return v, nil
	}
	at, ok := r.markers[m.Marker]
	if !ok {
		return broken, errors.New("no marker has this name")
	}
	changed, err := m.mutate(r.in.files[at.path].data, at)
	if err != nil {
		return broken, err
	}
	for i, s := range scopes {
		t, err := copies.of(ctx, s)
		if err != nil {
			return broken, err
		}
		last := i == len(scopes)-1
		if !last && !t.has[at.path] {
			continue
		}
		if err := r.before.passes(ctx, attempt{i, m.Package, m.Test}, t.dir); err != nil {
			if last {
				return broken, err
			}
			continue
		}
		v, err = t.with(at.path, changed, func() (verdict, error) {
			if err := t.build(ctx); err != nil {
				return broken, err
			}
			return runTest(ctx, t.dir, m.Package, m.Test)
		})
		if err != nil {
			return broken, err
		}
		if v != missed || last || s.built {
			if ctx.Err() != nil {
				return broken, ctx.Err()
			}
			return v, r.store.put(m.String(), keys[i], v)
		}
	}
	return v, nil
}
