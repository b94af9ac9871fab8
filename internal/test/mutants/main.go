// Command mutants switches mechanisms off one at a time, in a copy of the tree, and demands that the test named beside each
// fails. A comment "mutant: name" in the code marks the statement that a mechanism depends on; a row of the tables says how
// the statement changes, and which test has to notice. With -relocations it moves random pointers of an artifact instead, and
// demands that verification rejects each.
//
// In: the tracked files of the repository. Out: one line a mutant, and last "mutants: N caught: N crashed: C timed out: T".
// Caught means that the named test reported it; a crash of its process counts apart. Fails: if a row does not match the code, a
// mutant does not build, or its test does not pass without it, passes with it, or hangs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"golang.org/x/sync/errgroup"
)

func main() {
	only := flag.String("run", "", "only mutants whose line, as printed, matches this regular expression")
	relocations := flag.Int("relocations", 0, "move this many random pointers instead")
	seed := flag.Uint64("seed", rand.Uint64(), "of the pointers moved")
	flag.Parse()
	if *relocations > 0 {
		build, err := filepath.Abs("build")
		if err == nil {
			err = moveRelocations(context.Background(), *relocations, *seed, build)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "relocations: seed %d: %v\n", *seed, err)
			os.Exit(1)
		}
		return
	}
	counts, total, err := run(*only)
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("mutants: %d caught: %d crashed: %d timed out: %d\n", total, counts[caught], counts[crashed], counts[timedOut])
	if counts[caught]+counts[crashed] != total {
		os.Exit(1)
	}
}

// workers is how many mutants are tried at once, each in a copy of its own.
const workers = 2

func run(only string) (counts map[verdict]int, total int, err error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, 0, fmt.Errorf("read -run: %w", err)
	}
	markers, err := findMarkers(".")
	if err != nil {
		return nil, 0, err
	}
	rows := make(chan *mutant)
	results := make(chan verdict)
	var before baseline
	var trees errgroup.Group
	for range workers {
		trees.Go(func() error {
			dir, err := os.MkdirTemp("", "mutants-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			if err := copyTree(dir); err != nil {
				return err
			}
			if out, err := build(dir); err != nil {
				return fmt.Errorf("build the copy: %w\n%s", err, out)
			}
			for m := range rows {
				results <- m.report(dir, markers, &before)
			}
			return nil
		})
	}
	go func() {
		defer close(rows)
		for _, m := range all() {
			if wanted.MatchString(m.String()) {
				rows <- &m
			}
		}
	}()
	done := make(chan error)
	go func() { done <- trees.Wait() }()
	counts = map[verdict]int{}
	for {
		select {
		case v := <-results:
			total++
			counts[v]++
		case err := <-done:
			return counts, total, err
		}
	}
}

// report tries the mutant and prints its fate.
func (m *mutant) report(dir string, markers map[string]marker, before *baseline) verdict {
	v, err := m.try(dir, markers, before)
	if err != nil {
		v = broken
		fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", m, err)
	}
	fmt.Printf("%-9s %s\n", v, m)
	return v
}

func build(dir string) (output []byte, err error) {
	return command(dir, "make", "-s", "lib", "bin", "zoo", "programs-engine").CombinedOutput()
}

// copyTree copies the files that git knows or would add.
func copyTree(dir string) error {
	names, err := files(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// try sees that the test passes, applies the mutant, sees that everything still builds, runs the test, and takes it back.
func (m *mutant) try(dir string, markers map[string]marker, before *baseline) (v verdict, err error) {
	if err := before.passes(dir, m.Package, m.Test); err != nil {
		return broken, err
	}
	at, ok := markers[m.Marker]
	if !ok {
		return broken, errors.New("no marker has this name")
	}
	path := filepath.Join(dir, at.path)
	original, err := os.ReadFile(path)
	if err != nil {
		return broken, err
	}
	changed, err := m.mutate(original, at)
	if err != nil {
		return broken, err
	}
	if err := os.WriteFile(path, changed, 0o644); err != nil {
		return broken, err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, original, 0o644)) }()
	if out, err := build(dir); err != nil {
		return broken, fmt.Errorf("build: %w\n%s", err, out)
	}
	return runTest(dir, m.Package, m.Test)
}

func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "CGO_ENABLED=0")
	return cmd
}
