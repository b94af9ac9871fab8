package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// place is the surroundings of one attacked command: a home, a temporary folder and a cache of its own, beside a tree that the command must
// not touch.
type place struct {
	dir, home, tmp, cache, outside, out string
	build                               string
	before                              map[string]string
	swept                               bool // this program killed its processes, which then left temporary files
}

// marker is a variable that tells the processes of one place from all others of the machine.
const marker = "ATTACK_PLACE"

func (a *attacker) newPlace() (*place, error) {
	dir, err := os.MkdirTemp(a.dir, "place-")
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, build: a.build}
	for name, at := range map[string]*string{"home": &p.home, "tmp": &p.tmp, "cache": &p.cache, "outside": &p.outside, "out": &p.out} {
		*at = filepath.Join(dir, name)
		if err := os.Mkdir(*at, 0o700); err != nil {
			return nil, err
		}
	}
	// Hostile paths lead to these: a folder with files in it, a link to it, and one that belongs to another user.
	etc := filepath.Join(p.outside, "etc")
	taken := filepath.Join(p.outside, "taken", "medusa-caches-1")
	err = errors.Join(os.MkdirAll(filepath.Join(etc, "cron.d"), 0o755), os.WriteFile(filepath.Join(etc, "cron.d", "job"), []byte("mine\n"), 0o644),
		os.Symlink(etc, filepath.Join(p.outside, "link")), os.MkdirAll(taken, 0o777))
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(taken, 65534, 65534)
	}
	p.before = snapshot(p.dir, p.own)
	return p, err
}

// own are the folders in which the command may write.
func (p *place) own(path string) bool { return path == p.tmp || path == p.cache || path == p.out }

// snapshot describes every file below a folder, but for those below folders that skip names.
func snapshot(dir string, skip func(string) bool) map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone meanwhile
		}
		if skip(path) {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, _ := os.ReadFile(path)
			text += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			text += " " + target
		}
		all[path] = text
		return nil
	})
	return all
}

// written lists changes outside of the folders that the command may write to.
func (p *place) written() []string {
	after := snapshot(p.dir, p.own)
	var changed []string
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if p.before[path] != after[path] {
			changed = append(changed, strings.TrimPrefix(path, p.dir+"/"))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.before)) {
		if after[path] == "" {
			changed = append(changed, strings.TrimPrefix(path, p.dir+"/")+" is gone")
		}
	}
	return changed
}

// environ is the environment of a command. Of the caller's variables it has PATH only.
func (p *place) environ(variables ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TMPDIR=" + p.tmp, "MEDUSA_CACHE=" + p.cache, "DOCKER_CONFIG=" + p.home,
		"MEDUSA_LIB=" + filepath.Join(p.build, "lib"), "LD_LIBRARY_PATH=" + filepath.Join(p.build, "simulated"), "SIMGPU_MEMORY=256M",
		"SIMGPU_SEED=1", "GOTRACEBACK=single", marker + "=" + p.dir}, variables...)
}

// ended is how a command ended.
type ended struct {
	stdout, stderr string
	code           int // negative: by a signal
	late           bool
}

// patience is how long any command may take. Natively the test engine needs a tenth of a second.
const patience = 60 * time.Second

// run starts a program of the build and waits for it.
func (p *place) run(ctx context.Context, variables []string, program string, args ...string) (*ended, error) {
	cmd := p.command(variables, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e := &ended{}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
		p.end()
		<-done
		return nil, ctx.Err()
	case <-time.After(patience):
		e.late = true
		p.end()
		<-done
		p.swept = true
	}
	e.stdout, e.stderr, e.code = out.String(), errs.String(), cmd.ProcessState.ExitCode()
	return e, nil
}

func (p *place) command(variables []string, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.build, program), args...)
	cmd.Env, cmd.Dir = p.environ(variables...), p.out
	cmd.WaitDelay = time.Second // an engine that outlives its supervisor keeps the pipes
	return cmd
}

// processes lists the processes that were started in the place, whatever their parents are now. It finds them by their environment or their
// working folder: a guard has no environment, and for a moment no process that executes another program has one.
func (p *place) processes() []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	want := []byte(marker + "=" + p.dir + "\x00")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		at, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if strings.HasPrefix(at, p.dir+"/") || bytes.Contains(append(env, 0), want) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// remaining waits until the place has no process, and returns those that it has after the grace.
func (p *place) remaining(grace time.Duration) []int {
	pids := p.processes()
	for deadline := time.Now().Add(grace); len(pids) > 0 && time.Now().Before(deadline); pids = p.processes() {
		time.Sleep(20 * time.Millisecond)
	}
	return pids
}

// described describes processes.
func described(pids []int) string {
	var out []string
	for _, pid := range pids {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		wait, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
		lines := strings.SplitN(string(status), "\n", 9)
		out = append(out, fmt.Sprintf("%q %q in %s", bytes.ReplaceAll(name, []byte{0}, []byte{' '}), lines[:min(7, len(lines))], wait))
	}
	return strings.Join(out, "; ")
}

// end kills the processes that still run in the place, its guards included. Children that they start meanwhile are killed in the next round.
func (p *place) end() {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		pids := p.processes()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(pids) == 0 {
			return
		}
	}
}

// leftovers lists the remains of a command: processes that do not end on their own, and temporary files.
func (p *place) leftovers(grace time.Duration) []string {
	var found []string
	if len(p.remaining(grace)) > 0 {
		found = append(found, "a process")
		p.end()
	}
	entries, _ := os.ReadDir(p.tmp)
	for _, e := range entries {
		found = append(found, "tmp/"+randomPart.ReplaceAllString(e.Name(), "*"))
	}
	return found
}

// close checks the place a last time, and removes it.
func (p *place) close(t *tally, where string) error {
	for _, path := range p.written() {
		t.found(outside, where, "%s", path)
	}
	for _, what := range p.leftovers(3 * time.Second) {
		if !p.swept {
			t.found(left, where, "%s", what)
		}
	}
	return os.RemoveAll(p.dir)
}
