// Command faults lets every driver call of a restored start fail once with each error that is documented for it. It
// demands that the engine then starts natively and serves as after a native start, and that the restore leaves no object
// behind in the driver.
//
// In: the built binaries and the simulated GPU; the calls come from the log of a successful restore. Out: a line for
// each fault that ends otherwise, and last "faults: N wrong: W leaked: L". Fails: if W or L is not 0.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"medusa/restore/status"
)

func main() {
	build := flag.String("build", "build", "directory with the binaries")
	only := flag.String("engine", "", "zoo or reference; empty: both")
	verbose := flag.Bool("v", false, "print every fault and how it ended")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var sum tally
	for _, c := range []struct {
		name string
		variant
	}{
		{"zoo", variant{check: "none"}}, {"zoo", variant{exact: true, check: "none"}}, {"zoo", variant{check: "full"}},
		{"zoo", variant{check: "full", late: "warmed"}}, {"reference", variant{check: "none"}},
	} {
		if *only != "" && c.name != *only {
			continue
		}
		if err := all(ctx, *build, c.name, c.variant, *verbose, &sum); err != nil {
			fmt.Fprintf(os.Stderr, "faults: %v\n", err)
			os.Exit(1)
		}
	}
	fmt.Println(sum.String())
	if sum.wrong+sum.leaked > 0 {
		os.Exit(1)
	}
}

// engineArgs are the engines by the name of their binary: a few graphs with everything in them, and a small model at few
// batch sizes, one of which needs a hidden module.
var engineArgs = map[string][]string{
	"zoo": nil,
	"reference": {"run", "--model", "runners/reference/models/tiny", "--batch-sizes", "1,8", "--batches", "1:2,8:2",
		"--kv-cache-bytes", "33554432", "-o", "json"},
}

// all tries every fault of one engine.
func all(ctx context.Context, build, name string, how variant, verbose bool, sum *tally) error {
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e, err := newEngine(ctx, build, name, how, dir)
	if err != nil {
		return err
	}
	list, err := e.faults(documented())
	if err != nil {
		return err
	}
	var printing sync.Mutex
	return e.each(ctx, list, func(f fault, o *outcome) {
		v := e.judge(f, o)
		printing.Lock()
		defer printing.Unlock()
		sum.add(v)
		if verbose || v.wrong != "" || v.leaked != "" {
			fmt.Printf("%-9s %s: %s\n", strings.TrimSpace(name+" "+how.late), f, v)
		}
	})
}

// each tries the faults, as many at a time as there are processors, and hands over how each ended.
func (e *engine) each(ctx context.Context, list []fault, ended func(fault, *outcome)) error {
	work := make(chan fault)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(work)
		for _, f := range list {
			select {
			case work <- f:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for i := range runtime.NumCPU() {
		own := *e // with files of its own
		own.dir = filepath.Join(e.dir, strconv.Itoa(i))
		if err := os.Mkdir(own.dir, 0o755); err != nil {
			return err
		}
		group.Go(func() error {
			for f := range work {
				o, err := own.try(ctx, f)
				if err != nil {
					return err
				}
				ended(f, o)
			}
			return nil
		})
	}
	return group.Wait()
}

func newEngine(ctx context.Context, build, name string, how variant, dir string) (*engine, error) {
	build, err := filepath.Abs(build)
	if err != nil {
		return nil, err
	}
	e := &engine{name: name, variant: how, build: build, dir: dir, argv: append([]string{filepath.Join(build, name)}, engineArgs[name]...)}
	return e, e.prepare(ctx)
}

// baseAttempts bounds how often an engine is started until its region is at the recorded base: once in some hundred
// starts the system or the Go runtime places some memory there at random, and such a start makes other calls.
const baseAttempts = 4

// try starts the engine with one fault.
func (e *engine) try(ctx context.Context, f fault) (*outcome, error) {
	once := filepath.Join(e.dir, "once")
	for range baseAttempts {
		os.Remove(once)
		o, err := e.restore(ctx, "SIMGPU_FAIL="+f.String(), "SIMGPU_FAIL_ONCE="+once)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(once); err == nil {
			if o.elsewhere {
				continue
			}
			return o, nil
		} else if !e.exact || o.status == nil || o.status.Addresses != status.Relocated {
			return nil, fmt.Errorf("%s: let %s fail: the call was not made\n%s", e.name, f, o.stderr)
		}
	}
	return nil, fmt.Errorf("%s: let %s fail: the base of the region was taken %d times", e.name, f, baseAttempts)
}
