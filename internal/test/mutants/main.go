// Command mutants switches the mechanisms of table.go off one at a time, in a copy of the tree, and demands that the test
// named beside each fails. With -fixups it moves random pointers of an artifact instead, and demands that verification
// rejects each.
//
// In: the tracked files of the repository. Out: one line a mutant, and last "mutants: N caught: N". Fails: where a row
// no longer matches its file, a mutant does not build, or its test passes.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

func main() {
	only := flag.String("run", "", "only mutants whose name matches this regular expression")
	fixups := flag.Int("fixups", 0, "move this many random pointers instead")
	seed := flag.Uint64("seed", rand.Uint64(), "of the pointers moved")
	flag.Parse()
	if *fixups > 0 {
		build, err := filepath.Abs("build")
		if err == nil {
			err = moveFixups(context.Background(), *fixups, *seed, build)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "fixups: seed %d: %v\n", *seed, err)
			os.Exit(1)
		}
		return
	}
	caught, total, err := run(*only)
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("mutants: %d caught: %d\n", total, caught)
	if caught != total {
		os.Exit(1)
	}
}

// workers is how many mutants are tried at once, each in a copy of its own.
const workers = 2

func run(only string) (caught, total int, err error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return 0, 0, fmt.Errorf("read -run: %w", err)
	}
	rows := make(chan mutant)
	results := make(chan bool)
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
				results <- m.report(dir)
			}
			return nil
		})
	}
	go func() {
		defer close(rows)
		for _, m := range slices.Concat(table, nodes, shipping, large, attack) {
			if wanted.MatchString(m.Name) {
				rows <- m
			}
		}
	}()
	done := make(chan error)
	go func() { done <- trees.Wait() }()
	for {
		select {
		case found := <-results:
			total++
			if found {
				caught++
			}
		case err := <-done:
			return caught, total, err
		}
	}
}

// report tries the mutant and prints what became of it. One that cannot be tried counts as not caught.
func (m *mutant) report(dir string) bool {
	found, err := m.try(dir)
	verdict := "MISSED"
	switch {
	case err != nil:
		verdict = "BROKEN"
		fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", m.Name, err)
	case found:
		verdict = "caught"
	}
	fmt.Printf("%-7s %-44s by %s %s\n", verdict, m.Name, m.Package, m.Test)
	return found
}

func build(dir string) (output []byte, err error) {
	return command(dir, "make", "-s", "lib", "bin", "zoo", "programs-engine").CombinedOutput()
}

// copyTree copies the files that git knows or would add.
func copyTree(dir string) error {
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
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

// try applies the mutant, sees that everything still builds, runs its test, and takes it back.
func (m *mutant) try(dir string) (caught bool, err error) {
	path := filepath.Join(dir, m.File)
	original, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if n := bytes.Count(original, []byte(m.Old)); n != 1 {
		return false, fmt.Errorf("%s holds the text to change %d times, want once", m.File, n)
	}
	if err := os.WriteFile(path, bytes.Replace(original, []byte(m.Old), []byte(m.New), 1), 0o644); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, original, 0o644)) }()
	if out, err := build(dir); err != nil {
		return false, fmt.Errorf("build: %w\n%s", err, out)
	}
	out, err := command(dir, "go", "test", "-count=1", "-run", m.pattern(), m.Package).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return false, fmt.Errorf("no test matches %s in %s", m.Test, m.Package)
	case err == nil:
		return false, nil
	case !errors.As(err, &exit):
		return false, err
	case bytes.Contains(out, []byte("[build failed]")):
		return false, fmt.Errorf("its test does not build:\n%s", out)
	}
	return true, nil
}

// pattern is what -run takes: one expression a level of tests.
func (m *mutant) pattern() string {
	levels := strings.Split(m.Test, "/")
	for i, l := range levels {
		levels[i] = "^(" + l + ")$"
	}
	return strings.Join(levels, "/")
}

func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "CGO_ENABLED=0")
	return cmd
}
