package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"medusa/restore/pool"
)

//go:embed engine.py imported_module.py launch.py
var sources embed.FS

const (
	atOnce   = 4
	patience = time.Minute // for steps that take less than a second on an idle machine
	restarts = 60          // requests between two kills of the pool, on average
)

// test is one run.
type test struct {
	dir, python, medusa, build, socket string
	hashes                             map[string]int64 // of "sentinel", by PYTHONHASHSEED
	nice                               int              // of this process

	mu     sync.Mutex
	pool   *exec.Cmd
	counts counts
	wrong  []string
	seen   map[string]int  // random numbers and processes, by request
	ended  map[string]bool // how starts from the pool have ended
}

type counts struct {
	requests, pooled, cold, killed, pools int
	reason                                string // of the last cold start
}

func (c counts) String() string {
	return fmt.Sprintf("requests=%d pooled=%d cold=%d killed=%d pools_killed=%d mixed=0 lost=0 leaked=0", c.requests, c.pooled, c.cold, c.killed, c.pools)
}

// run is the whole test. build holds medusa and lib.
func run(build, dir string, n int, seed uint64) (counts, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return counts{}, err
	}
	t := &test{dir: dir, hashes: map[string]int64{}, seen: map[string]int{}, ended: map[string]bool{}, socket: filepath.Join(dir, "socket", "pool")}
	if t.build, err = filepath.Abs(build); err != nil {
		return counts{}, err
	}
	t.medusa = filepath.Join(t.build, "medusa")
	// If python3 is a shim, it starts another program, so ask for that program's path.
	out, err := exec.Command(python, "-c", "import os, sys; print(os.nice(0), sys.executable)").Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &t.nice, &t.python)
	}
	if err != nil {
		return counts{}, fmt.Errorf("run python3: %w", err)
	}
	// Processes that are left by their parent become children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return counts{}, err
	}
	if err := t.prepare(); err != nil {
		return counts{}, err
	}
	if err := t.startPool(); err != nil {
		return counts{}, err
	}
	defer func() { _ = t.pool.Process.Kill() }()
	t.ask(n, seed)
	t.wrong = append(t.wrong, t.end()...)
	t.counts.requests = n
	if t.counts.pooled < n/3 {
		t.wrong = append(t.wrong, fmt.Sprintf("only %d of %d starts came from the pool, the last cold one because of: %s", t.counts.pooled, n, t.counts.reason))
	}
	for _, how := range []string{"exit", "die", "signal", "wait child", "wait caller"} {
		if !t.ended[how] {
			t.wrong = append(t.wrong, "no start from the pool ended in this way: "+how)
		}
	}
	if len(t.wrong) > 0 {
		return t.counts, errors.New(strings.Join(t.wrong[:min(len(t.wrong), 20)], "\n"))
	}
	return t.counts, nil
}

func (t *test) prepare() error {
	for _, name := range []string{"engine.py", "imported_module.py", "launch.py"} {
		data, err := sources.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(t.dir, name), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(t.dir, "modules"), 0o755); err != nil {
		return err
	}
	// Beside the script, Python would find the module in the script's own folder.
	if err := os.Rename(filepath.Join(t.dir, "imported_module.py"), filepath.Join(t.dir, "modules", "imported_module.py")); err != nil {
		return err
	}
	for _, seed := range hashSeeds {
		cmd := exec.Command(t.python, "-c", "print(hash('sentinel'))")
		cmd.Env = []string{"PYTHONHASHSEED=" + seed}
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		if t.hashes[seed], err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err != nil {
			return err
		}
	}
	type engine struct {
		Name        string            `json:"name"`
		Command     []string          `json:"command"`
		Modules     []string          `json:"modules"`
		Environment map[string]string `json:"environment"`
		Size        int               `json:"size"`
	}
	var engines []engine
	for _, seed := range hashSeeds[:2] {
		engines = append(engines, engine{"seed-" + seed, []string{t.python, "engine.py"}, []string{"imported_module"}, map[string]string{"PYTHONHASHSEED": seed}, 4})
	}
	text, err := json.Marshal(map[string]any{"socket": t.socket, "quiet": 0, "engines": engines}) // JSON is YAML
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.dir, "pool.yaml"), text, 0o644)
}

func (t *test) environment(seed, read string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "PYTHONCOERCECLOCALE=0", "HOME=" + t.dir, "MEDUSA_CACHE=" + filepath.Join(t.dir, "cache"), "TMPDIR=" + t.dir, "PYTHONHASHSEED=" + seed,
		"PYTHONPATH=" + filepath.Join(t.dir, "modules"), "READ_BY_IMPORT=" + read, "MEDUSA_LIB=" + filepath.Join(t.build, "lib")}
}

func (t *test) startPool() error {
	cmd := exec.Command(t.medusa, "pool", filepath.Join(t.dir, "pool.yaml"))
	cmd.Env, cmd.Dir = append(t.environment(hashSeeds[2], "1"), "ONLY_THE_POOL=1"), t.dir
	log, err := os.OpenFile(filepath.Join(t.dir, "pool.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return err
	}
	t.pool = cmd
	return t.full()
}

// full waits until all processes wait.
func (t *test) full() error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := pool.ReadStatus(t.socket)
		if err != nil {
			continue
		}
		missing := 0
		for _, e := range s.Engines {
			missing += e.Size - e.Ready
		}
		if missing == 0 {
			return nil
		}
	}
	log, _ := os.ReadFile(filepath.Join(t.dir, "pool.log"))
	return fmt.Errorf("the pool has no processes after %v\n%s", patience, log)
}

// ask makes all requests, some at a time, and kills the pool now and then.
func (t *test) ask(n int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	for done := 0; done < n; {
		if err := t.full(); err != nil {
			t.add(err.Error())
			return
		}
		var requests []*request
		for range min(atOnce, n-done) {
			q, err := t.newRequest(done, r)
			done++
			if err != nil {
				t.add(err.Error())
				return
			}
			requests = append(requests, q)
		}
		var group sync.WaitGroup
		kill := r.IntN(restarts) < atOnce
		for _, q := range requests {
			group.Go(func() { t.serve(q, kill) })
		}
		if kill {
			time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
			_ = t.pool.Process.Kill()
			_ = t.pool.Wait()
			group.Wait()
			t.counts.pools++
			if err := t.startPool(); err != nil {
				t.add(err.Error())
				return
			}
		}
		group.Wait()
	}
}

func (t *test) add(wrong ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, wrong...)
}

// serve makes one request, and judges how it ends. If the pool is not killed meanwhile, it has a process for each that fits.
func (t *test) serve(q *request, kill bool) {
	defer q.close()
	if err := q.command.Start(); err != nil {
		t.add(err.Error())
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- q.command.Wait() }()
	f, err := q.await(ended)
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(q.dir, "stderr"))
		t.add(fmt.Sprintf("request %d (%s): lost: %v\n%s", q.id, q.what, err, text))
		_ = q.command.Process.Kill()
		return
	}
	t.add(q.check(t, f)...)
	t.add(q.end(f, ended)...)
	if q.kill != "caller" {
		t.add(q.output(f.Pool == pool.Yes)...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, once := range []string{fmt.Sprint("random ", f.Random[0]), fmt.Sprint("random ", f.Random[1])} {
		if other, twice := t.seen[once]; twice {
			t.wrong = append(t.wrong, fmt.Sprintf("requests %d and %d: %s", other, q.id, once))
		}
		t.seen[once] = q.id
	}
	fits := q.seed != hashSeeds[2] && q.read == "1"
	switch {
	case f.Pool == pool.Yes:
		t.counts.pooled++
		t.ended[strings.TrimSpace(q.what+" "+q.kill)] = true
		if !fits {
			t.wrong = append(t.wrong, fmt.Sprintf("request %d was handed a process that differs", q.id))
		}
	default:
		t.counts.cold++
		t.counts.reason = f.Pool
		if fits && !kill {
			t.wrong = append(t.wrong, fmt.Sprintf("request %d fits a process that waited, and its start was cold: %s", q.id, f.Pool))
		}
		if q.seed == hashSeeds[2] && !strings.Contains(f.Pool, "PYTHONHASHSEED") && !strings.HasPrefix(f.Pool, "ask pool") {
			t.wrong = append(t.wrong, fmt.Sprintf("request %d: another seed is not named: %s", q.id, f.Pool))
		}
	}
	if q.kill != "" {
		t.counts.killed++
	}
}

// await returns the engine's findings. They have to be there, whichever process has died.
func (q *request) await(ended <-chan error) (*found, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(q.out)
		if err == nil {
			var f found
			return &f, json.Unmarshal(data, &f)
		}
		if len(ended) > 0 {
			if _, err := os.Stat(q.out); err != nil {
				return nil, fmt.Errorf("it has ended (%v) without a finding", q.command.ProcessState)
			}
		}
	}
	return nil, fmt.Errorf("no finding after %v", patience)
}

// end lets the request end as planned, and describes a wrong end.
func (q *request) end(f *found, ended <-chan error) (wrong []string) {
	want := q.number
	switch {
	case q.what == "die":
		want += 128
	case q.what == "signal" && f.Pool == pool.Yes:
		_ = q.command.Process.Signal(syscall.SIGUSR2)
	case q.what == "signal": // a cold start passes on SIGTERM only
		_ = syscall.Kill(f.Pid, syscall.SIGUSR2)
	case q.kill == "child":
		_ = syscall.Kill(f.Pid, syscall.SIGKILL)
		want = 128 + int(syscall.SIGKILL)
	case q.kill == "caller":
		_ = q.command.Process.Kill()
		want = -1
	}
	select {
	case <-ended:
	case <-time.After(patience):
		_ = q.command.Process.Kill()
		return []string{fmt.Sprintf("request %d (%s %s): it does not end", q.id, q.what, q.kill)}
	}
	if got := q.command.ProcessState.ExitCode(); got != want {
		text, _ := os.ReadFile(filepath.Join(q.dir, "stderr"))
		wrong = append(wrong, fmt.Sprintf("request %d (%s %s, pool %q): exit code %d, want %d\n%s", q.id, q.what, q.kill, f.Pool, got, want, text))
	}
	for end := time.Now().Add(patience); alive(f.Pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(f.Pid, syscall.SIGKILL)
			return append(wrong, fmt.Sprintf("request %d (%s %s): process %d is left", q.id, q.what, q.kill, f.Pid))
		}
	}
	return wrong
}

// alive is false for a process that has ended, even if it was not reaped yet.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// end ends the pool, after which no process may be left.
func (t *test) end() (wrong []string) {
	if err := t.full(); err != nil {
		return []string{err.Error()}
	}
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", t.pool.Process.Pid))
	if most := 24 + 3*8; len(files) > most {
		wrong = append(wrong, fmt.Sprintf("the pool has %d descriptors, at most %d are in use", len(files), most))
	}
	_ = t.pool.Process.Signal(syscall.SIGTERM)
	if err := t.pool.Wait(); err != nil {
		wrong = append(wrong, fmt.Sprintf("the pool ended with %v", err))
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		text, _ := filepath.Glob("/proc/self/task/*/children")
		for _, path := range text {
			data, _ := os.ReadFile(path)
			for _, pid := range strings.Fields(string(data)) {
				if n, err := strconv.Atoi(pid); err == nil && alive(n) {
					name, _ := os.ReadFile("/proc/" + pid + "/cmdline")
					left = append(left, pid+" "+strings.ReplaceAll(string(name), "\x00", " "))
				}
			}
		}
		if len(left) == 0 {
			return wrong
		}
		if time.Now().After(end) {
			return append(wrong, "processes are left: "+strings.Join(left, ", "))
		}
	}
}
