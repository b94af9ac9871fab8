package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"medusa/interpose"
)

// maxMemory is the most memory, in KiB, for an engine that is given hostile artifacts: many times that of its own start.
const maxMemory = 1 << 20

// rebuilds is the least share of mutants that has to get as far as graphs are rebuilt, in percent.
const rebuilds = 20

// stages gives every mutant to an engine that restores one after the other, and counts how far each gets.
func stages(ctx context.Context, a *attacker) error {
	counts := map[string]int{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.NumCPU()
	reached := make([]bool, a.n)
	for w := range workers {
		group.Go(func() error {
			p, err := a.newPlace()
			if err != nil {
				return err
			}
			var engines = map[*base]*worker{}
			defer func() {
				for _, e := range engines {
					e.stop(a, "the last mutant")
				}
				_ = os.RemoveAll(p.dir)
			}()
			for i := w; i < a.n; i += workers {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				stage, err := a.stage(p, engines, i)
				if err != nil {
					return err
				}
				mu.Lock()
				counts[stage]++
				reached[i] = stage == "rebuild" || stage == "ready"
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, yes := range reached {
		if yes {
			a.ranked = append(a.ranked, i)
		}
	}
	a.try(a.n)
	a.line("mutants by the stage that they reached", counts)
	if 100*len(a.ranked) < rebuilds*a.n {
		a.found(too, "mutants", "%d of %d reached rebuild, want %d %%", len(a.ranked), a.n, rebuilds)
	}
	return nil
}

// stage tries one mutant.
func (a *attacker) stage(p *place, engines map[*base]*worker, i int) (string, error) {
	b, file, what, err := a.mutant(i, "/outside")
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.out, "mutant.medusa")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		return "", err
	}
	e := engines[b]
	if e == nil {
		if e, err = a.startWorker(p, b); err != nil {
			return "", err
		}
		engines[b] = e
	}
	got, alive := e.ask(path)
	if !alive {
		delete(engines, b)
		got.Stage = e.stop(a, what)
	}
	if text := panicked(got.Detail); text != "" {
		a.found(panics, what, "%s", text)
	}
	if got.Stage == "ready" {
		for _, text := range outOfBounds(path) {
			a.found(extents, what, "%s", text)
		}
	}
	if a.verbose {
		fmt.Fprintf(a.out, "%-8s %s: %s\n", got.Stage, what, got.Detail)
	}
	return got.Stage, nil
}

// worker is an engine that restores one artifact after the other.
type worker struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs bytes.Buffer
	late bool
}

// answered is the engine's answer to one artifact.
type answered struct{ Stage, Detail string }

func (a *attacker) startWorker(p *place, b *base) (*worker, error) {
	cfg := interpose.Config{Library: filepath.Join(a.build, "lib", interpose.LibraryName), Mode: interpose.Replay, Exact: interpose.Region(b.region.Region)}
	cmd, err := interpose.Command(context.Background(), cfg, []string{filepath.Join(a.build, "zoo")})
	if err != nil {
		return nil, err
	}
	// Keep the interposer's variables, and no others of this process.
	var own []string
	for _, v := range cmd.Env {
		for _, name := range []string{"LD_PRELOAD=", "MEDUSA_MODE=", "MEDUSA_EXACT="} {
			if len(v) > len(name) && v[:len(name)] == name {
				own = append(own, v)
			}
		}
	}
	cmd.Env = append(append(p.environ(b.env...), own...), "MEDUSA_RUN=restore", "MEDUSA_ARTIFACT="+b.path, "ZOO_SESSIONS=1")
	cmd.Dir = p.out
	w := &worker{cmd: cmd}
	cmd.Stderr = &lastBytes{to: &w.errs}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.out = in, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// It has to restore its own artifact. Otherwise the stages of mutants would have no meaning.
	if got, alive := w.ask(b.path); !alive || got.Stage != "ready" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("restore %s unchanged: %+v\n%s", b.name, got, w.errs.String())
	}
	return w, nil
}

// ask returns how far the artifact got, and whether the engine still lives.
func (w *worker) ask(path string) (answered, bool) {
	var got answered
	timer := time.AfterFunc(patience, func() {
		w.late = true
		_ = w.cmd.Process.Kill()
	})
	defer timer.Stop()
	if _, err := io.WriteString(w.in, path+"\n"); err != nil {
		return got, false
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &got) != nil {
		return got, false
	}
	return got, true
}

// lostDevice is the exit code of an engine whose memory or device was lost while graphs were rebuilt (status.ExitSticky).
const lostDevice = 86

// stop ends the engine, describes a wrong end, and returns the stage in which it ended.
func (w *worker) stop(a *attacker, what string) string {
	_ = w.in.Close()
	_ = w.cmd.Wait()
	if text := panicked(w.errs.String()); text != "" {
		a.found(panics, what, "%s", text)
	} else if w.late {
		a.found(hang, what, "no answer in %v", patience)
	} else if code := w.cmd.ProcessState.ExitCode(); code != 0 && code != lostDevice {
		a.found(panics, what, "the engine ended with status %d: %s", code, lastLine(w.errs.String()))
	}
	if usage, ok := w.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && usage.Maxrss > maxMemory {
		a.found(memory, what, "%d MiB", usage.Maxrss>>10)
	}
	return "rebuild"
}

// lastBytes keeps the end of an engine's output about thousands of artifacts.
type lastBytes struct{ to *bytes.Buffer }

func (l *lastBytes) Write(p []byte) (int, error) {
	if l.to.Len() > 1<<20 {
		l.to.Reset()
	}
	return l.to.Write(p)
}
