// Package testenv gives tests the built project: its root, its binaries and libraries, and the environment in which a
// child process meets the simulated GPU. Tests that start processes use it instead of paths of their own.
//
// Build runs make, so a test never runs against a library that is older than its sources. A missing compiler fails the
// test rather than skipping it: the README promises that the tests run wherever make does.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Root returns the project's root folder, the one with go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			err = errors.New("no go.mod above the test's folder")
		}
		dir = parent
	}
	return "", fmt.Errorf("find project root: %w", err)
}

// Path returns a path below the project's root.
func Path(t testing.TB, elements ...string) string {
	t.Helper()
	return filepath.Join(append([]string{Root(t)}, elements...)...)
}

// built remembers the outcome of each target for the life of the test process.
var built sync.Map

type outcome struct {
	once   sync.Once
	output string
	err    error
}

// Build makes targets of the Makefile; without any it makes the libraries and the binaries. Test processes that build at
// the same time wait for each other.
func Build(t testing.TB, targets ...string) {
	t.Helper()
	if len(targets) == 0 {
		targets = []string{"lib", "bin"}
	}
	root := Root(t)
	for _, target := range targets {
		value, _ := built.LoadOrStore(target, new(outcome))
		o := value.(*outcome)
		o.once.Do(func() { o.output, o.err = runMake(root, target) })
		if o.err != nil {
			t.Fatalf("make %s: %v\n%s", target, o.err, o.output)
		}
	}
}

func runMake(root, target string) (string, error) {
	if err := os.MkdirAll(filepath.Join(root, "build"), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(root, "build", ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close() // which releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	cmd := exec.Command("make", "-s", "-C", root, target)
	// Without the flags of a surrounding make, and built as users build it even if the tests need cgo.
	cmd.Env = append(without(os.Environ(), "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CGO_ENABLED", "GOFLAGS"), "CGO_ENABLED=0")
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// Simulated returns the environment of a child process whose libcuda.so.1 is the simulated GPU, with variables added or
// replaced ("NAME=value"). The test's own variables of Medusa, the simulator and preloading are left out.
func Simulated(t testing.TB, variables ...string) []string {
	t.Helper()
	Build(t, "lib")
	env := without(os.Environ(), "LD_PRELOAD", "LD_LIBRARY_PATH", "MEDUSA_", "SIMGPU_", "VBLAS_LIB")
	return append(append(env, "LD_LIBRARY_PATH="+Path(t, "build", "simulated")), variables...)
}

// Main is the TestMain of tests that make driver calls in their own process: the driver is the simulated GPU, or with
// DEVICE=cuda the machine's. The loader reads LD_LIBRARY_PATH when a process starts, so the tests start themselves again.
func Main(m *testing.M) {
	if err := onSimulated(); err != nil {
		fmt.Fprintf(os.Stderr, "start on the simulated GPU: %v\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// onSimulated returns nil if this process already has its driver, and does not return if it has to start again.
func onSimulated() error {
	const path = "LD_LIBRARY_PATH"
	// Any of its builds: emulators are given one for another machine.
	given := func(folder string) bool { return filepath.Base(folder) == "simulated" }
	if os.Getenv("DEVICE") == "cuda" || slices.ContainsFunc(filepath.SplitList(os.Getenv(path)), given) {
		return nil
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	if output, err := runMake(root, "lib"); err != nil {
		return fmt.Errorf("make lib: %w\n%s", err, output)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv(path, filepath.Join(root, "build", "simulated")+":"+os.Getenv(path)); err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}

// without leaves the variables out that have one of the names, or, for a name that ends in an underscore, that prefix.
func without(env []string, names ...string) []string {
	var kept []string
next:
	for _, variable := range env {
		key, _, _ := strings.Cut(variable, "=")
		for _, name := range names {
			if key == name || strings.HasSuffix(name, "_") && strings.HasPrefix(key, name) {
				continue next
			}
		}
		kept = append(kept, variable)
	}
	return kept
}
