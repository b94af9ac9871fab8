package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
	"medusa/test/attack/mutate"
)

// Bounds for compiling two traces. The test engine's own take some milliseconds and 30 MiB; the hostile ones have 100,000
// records and take a few seconds if time grows with their number.
const (
	compileTime   = 15 * time.Second // of the processors
	compileMemory = 1536 << 10       // KiB
)

// compileVariable makes this program compile the traces in a folder and end.
const compileVariable = "ATTACK_COMPILE"

// compileAndExit is the body of that process.
func compileAndExit(dir string) {
	limit := uint64(compileTime / time.Second)
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go endAt(2 * compileMemory << 10)
	if err := compileDir(dir); err != nil {
		fmt.Printf("%s: %v\n", refusal(err), err)
		os.Exit(0)
	}
	fmt.Println("compiled")
	os.Exit(0)
}

// endAt ends the process before it takes the machine's memory. A limit of the system would count a race detector's reservations.
func endAt(bytes uint64) {
	taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for range time.Tick(20 * time.Millisecond) {
		if metrics.Read(taken); taken[0].Value.Uint64() > bytes {
			fmt.Fprintln(os.Stderr, "fatal error: out of memory")
			os.Exit(2)
		}
	}
}

func compileDir(dir string) error {
	a, err := recording.Read(filepath.Join(dir, "record-a"))
	if err != nil {
		return err
	}
	b, err := recording.Read(filepath.Join(dir, "record-b"))
	if err != nil {
		return err
	}
	spec, pads, err := compile.Compile(a, b, nil)
	if err == nil {
		err = pads.Unproven()
	}
	if err != nil {
		return err
	}
	data, err := graphir.Encode(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, compiledName), data, 0o644)
}

// recorded keeps the traces of a base's materializing.
func (a *attacker) recorded(ctx context.Context, b *base) (runs [2][]trace.Record, err error) {
	p, err := a.newPlace()
	if err != nil {
		return runs, err
	}
	defer os.RemoveAll(p.dir)
	kept := filepath.Join(p.out, "traces")
	e, err := p.run(ctx, b.env, "medusa", "materialize", "--keep-traces", kept, "-o", filepath.Join(p.out, "x.medusa"), "--", filepath.Join(a.build, "zoo"))
	if err != nil {
		return runs, err
	}
	for i, run := range []string{"record-a", "record-b"} {
		files, err := filepath.Glob(filepath.Join(kept, run+"*.trace"))
		if err != nil || len(files) != 1 {
			return runs, fmt.Errorf("keep traces of %s: found %v\n%s", b.name, files, e.stderr)
		}
		if runs[i], err = trace.ReadAll(files[0]); err != nil {
			return runs, err
		}
	}
	return runs, nil
}

// traces compiles pairs of traces of which one or both were changed, and recordings of which every pointer is known.
func traces(ctx context.Context, a *attacker) error {
	n := a.share(100, 10)
	var all [][2][]trace.Record
	for _, b := range a.bases {
		runs, err := a.recorded(ctx, b)
		if err != nil {
			return err
		}
		all = append(all, runs)
	}
	counts := map[string]int{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	count := func(compile func() (string, error)) {
		group.Go(func() error {
			how, err := compile()
			mu.Lock()
			defer mu.Unlock()
			counts[how]++
			return err
		})
	}
	compile := func(what string, pair [2][]byte) {
		count(func() (string, error) { return a.compile(ctx, what, pair, nil) })
	}
	for i := range n {
		runs := all[i%len(all)]
		pair, what, err := mutantPair(runs, a.seed, i)
		if err != nil {
			return err
		}
		compile(fmt.Sprintf("trace mutant %d of %s (%s)", i, a.bases[i%len(all)].name, what), pair)
	}
	for _, h := range mutate.HostileTraces {
		if h.Slow && a.n < 1000 {
			continue
		}
		n++
		var pair [2][]byte
		var err error
		for run := range pair {
			if pair[run], err = h.Write(all[0][run], uint64(run)); err != nil {
				return err
			}
		}
		compile("trace with "+h.Name, pair)
	}
	for i := range mutate.CraftedRecordings {
		n++
		count(func() (string, error) { return a.pointers(ctx, &mutate.CraftedRecordings[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.try(n)
	a.line("traces", counts)
	return nil
}

// mutantPair changes record-a; every second time record-b in the same way, so that the difference alone is not the reason of a refusal.
func mutantPair(runs [2][]trace.Record, seed uint64, i int) (pair [2][]byte, what string, err error) {
	for run := range pair {
		r := rand.New(rand.NewPCG(seed, uint64(i)|1<<40))
		if run == 1 && i%2 == 0 {
			pair[1], err = mutate.Copy(runs[1])
		} else {
			pair[run], what, err = mutate.Trace(runs[run], r)
		}
		if err != nil {
			return pair, what, err
		}
	}
	return pair, what, nil
}

// compile compiles one pair in a process of its own. Judge, if there is one, gets the outcome, the process's output and
// the folder with the compiled graphs.
func (a *attacker) compile(ctx context.Context, what string, pair [2][]byte, judge func(how, said, dir string) error) (string, error) {
	dir, err := os.MkdirTemp(a.dir, "traces-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for i, name := range []string{"record-a", "record-b"} {
		if err := os.WriteFile(filepath.Join(dir, name), pair[i], 0o644); err != nil {
			return "", err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeout(ctx, 10*patience) // of a machine with other work
	defer stop()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = []string{compileVariable + "=" + dir, "TMPDIR=" + dir, "GOTRACEBACK=single", "GOGC=50"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch text := panicked(errs.String()); {
	case strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory") || usage.Maxrss > compileMemory:
		a.found(memory, what, "%d MiB, %v", usage.Maxrss>>10, took.Round(time.Second))
	case text != "":
		a.found(panics, what, "%s", text)
	case took >= compileTime-time.Second || ctx.Err() != nil:
		a.found(hang, what, "%v", took.Round(time.Second))
	case err != nil:
		a.found(panics, what, "status %d: %s%s", cmd.ProcessState.ExitCode(), out.String(), lastLine(errs.String()))
	default:
		if a.verbose {
			fmt.Fprintf(a.out, "%v, %d MiB, %.200s: %s\n", took.Round(10*time.Millisecond), usage.Maxrss>>10, strings.TrimSpace(out.String()), what)
		}
		how, _, _ := strings.Cut(strings.TrimSpace(out.String()), ":")
		if judge != nil {
			return how, judge(how, out.String(), dir)
		}
		return how, nil
	}
	return broken, nil
}
