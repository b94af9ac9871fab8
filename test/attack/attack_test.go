package main

import (
	"bytes"
	"encoding/gob"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"medusa/test/testenv"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(compileVariable); dir != "" {
		compileAndExit(dir)
	}
	os.Exit(m.Run())
}

// The line that each kind of attack ends with.
var lines = map[string]string{
	"stages": "mutants by the stage that they reached: ", "live": "live restores: ", "fallbacks": "late fallbacks: ", "traces": "traces: ",
	"archives": "archives, each twice: ", "registry": "registry faults: ", "policy": "forgeries under a policy: ",
	"environment": "variables of the environment: ", "screens": "screens: ", "kills": "kills: ", "disks": "small and full disks: ",
}

// A small run of make attack. It has to end as a large one does.
func TestAttack(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	var out bytes.Buffer
	sum := &tally{out: &out}
	a, err := newAttacker(t.Context(), options{n: 200, seed: 1, build: testenv.Path(t, "build")}, sum, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(kinds) != len(lines) {
		t.Errorf("%d kinds, want %d", len(kinds), len(lines))
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			out.Reset()
			sum.findings = nil
			if err := k.run(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if line := lines[k.name]; sum.failed() || line == "" || !bytes.Contains(out.Bytes(), []byte(line)) {
				t.Errorf("want a line %q and nothing found:\n%s%s", line, out.String(), sum.last())
			}
		})
	}
	want := regexp.MustCompile(`^attack: \d+ tried, 0 panics, 0 files outside, 0 accepted under a policy, 0 wrong after fallback, 0 left behind$`)
	if last := sum.last(); !t.Failed() && !want.MatchString(last) {
		t.Error(last)
	}
}

// A place notices changes outside of it, and leftovers.
func TestPlaceNotices(t *testing.T) {
	a := &attacker{tally: &tally{out: &bytes.Buffer{}}, dir: t.TempDir()}
	for name, do := range map[string]struct {
		make func(p *place) error
		kind string
	}{
		"nothing":          {func(*place) error { return nil }, ""},
		"in its own":       {func(p *place) error { return os.WriteFile(filepath.Join(p.cache, "x"), nil, 0o600) }, ""},
		"a new file":       {func(p *place) error { return os.WriteFile(filepath.Join(p.outside, "x"), nil, 0o600) }, outside},
		"another content":  {func(p *place) error { return os.WriteFile(filepath.Join(p.outside, "etc/cron.d/job"), nil, 0o644) }, outside},
		"other rights":     {func(p *place) error { return os.Chmod(filepath.Join(p.outside, "etc"), 0o700) }, outside},
		"through a link":   {func(p *place) error { return os.WriteFile(filepath.Join(p.outside, "link/x"), nil, 0o600) }, outside},
		"a removed file":   {func(p *place) error { return os.Remove(filepath.Join(p.outside, "etc/cron.d/job")) }, outside},
		"a temporary file": {func(p *place) error { return os.WriteFile(filepath.Join(p.tmp, "x"), nil, 0o600) }, left},
	} {
		a.findings = nil
		p, err := a.newPlace()
		if err != nil {
			t.Fatal(err)
		}
		if err := do.make(p); err != nil {
			t.Fatal(err)
		}
		if err := p.close(a.tally, name); err != nil {
			t.Fatal(err)
		}
		if n := a.findings[do.kind]; (do.kind == "") != (len(a.findings) == 0) || do.kind != "" && n == 0 {
			t.Errorf("%s: %v", name, a.findings)
		}
	}
}

// A guard has no environment. While it starts an engine for a command that has been killed, it is the only process to see.
func TestPlaceSeesTheGuard(t *testing.T) {
	testenv.Build(t, "bin")
	a := &attacker{options: options{build: testenv.Path(t, "build")}, tally: &tally{out: &bytes.Buffer{}}, dir: t.TempDir()}
	p, err := a.newPlace()
	if err != nil {
		t.Fatal(err)
	}
	control, orders, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := p.command(nil, "medusa")
	cmd.Args, cmd.Env, cmd.ExtraFiles = []string{"medusa-guard"}, []string{}, []*os.File{control, os.Stderr}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = control.Close()
	if pids := p.remaining(0); len(pids) != 1 || pids[0] != cmd.Process.Pid {
		t.Errorf("processes %v, want the guard %d", pids, cmd.Process.Pid)
	}
	// The command orders an engine and dies before the guard reads that.
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	job := struct {
		Path      string
		Args, Env []string
	}{"/bin/sleep", []string{"sleep", "1000"}, p.environ()}
	if err := errors.Join(gob.NewEncoder(orders).Encode(job), orders.Close()); err != nil {
		t.Fatal(err)
	}
	if pids := p.remaining(50 * time.Millisecond); len(pids) == 0 {
		t.Error("a guard that is about to start an engine was not seen")
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if pids := p.remaining(3 * time.Second); len(pids) != 0 {
		t.Errorf("processes %v behind the guard: %s", pids, described(pids))
		p.end()
	}
}

// The output of programs that panic, and that of others.
func TestPanicked(t *testing.T) {
	for text, want := range map[string]bool{
		"medusa: native start: memory: out of memory\n": false, "panic: runtime error: x\n\ngoroutine 1 [running]:\n": true,
		"x\nfatal error: all goroutines are asleep\n": true, "==1==ERROR: AddressSanitizer: heap-buffer-overflow\n": true,
		"[signal SIGSEGV: segmentation violation]\n": true, "": false,
	} {
		if got := panicked(text) != ""; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
