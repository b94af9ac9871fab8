package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"medusa/test/stubengine"
)

const (
	lives       = 4 // of the server, by turns told to end and killed
	soakModels  = 6
	soakClients = 6
	roundTime   = 10 * time.Second
	spare       = 4 // goroutines and descriptors more than a fresh server's: connections that are about to end
)

// soak is a long run of one server after the other, with all faults at once.
type soak struct {
	*run
	good, failed, unknown, left, kills atomic.Int64
	rounds                             int
	growth                             float64 // of memory within a life, the most
	wrong                              atomic.Pointer[error]
}

// soak asks for minutes, while engines are killed, clients leave, prompts break engines, and the configuration changes. Between rounds all
// clients stop and the last engine goes: then the server must have as much as a fresh one.
func (r *run) soak() (string, error) {
	k := &soak{run: r}
	each := time.Duration(r.minutes * float64(time.Minute) / lives)
	for n := range lives {
		if err := k.life(n, time.Now().Add(each)); err != nil {
			return "", fmt.Errorf("life %d of the server: %w", n, err)
		}
	}
	if k.good.Load() < k.failed.Load() {
		return "", fmt.Errorf("%d requests were answered, %d failed: this shows too little", k.good.Load(), k.failed.Load())
	}
	return fmt.Sprintf("minutes=%g answered=%d failed-clearly=%d unknown-model=%d clients-left=%d killed-engines=%d servers=%d rounds=%d most-memory-growth=%.2f lost=0 orphans=0",
		r.minutes, k.good.Load(), k.failed.Load(), k.unknown.Load(), k.left.Load(), k.kills.Load(), lives, k.rounds, k.growth), nil
}

// life runs a server for a time. The folder of its state is that of the server before.
func (k *soak) life(n int, end time.Time) (err error) {
	s, log, err := k.serveText(k.file(n, 0))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%w\n%s", err, tail(s.output())), s.kill())
		}
	}()
	fresh, err := s.size(k.work)
	if err != nil {
		return err
	}
	var asked [2]int64
	first := size{}
	for round := 0; time.Now().Before(end) || round == 0; round++ {
		if err := k.round(s, n, round, &asked); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		now, err := k.quiet(s, n, fresh, asked)
		if err != nil {
			return fmt.Errorf("after round %d: %w", round, err)
		}
		if round == 0 {
			first = now
		}
		growth := float64(now.memory) / float64(first.memory)
		if k.growth = max(k.growth, growth); growth > 1.5 && now.memory > first.memory+64<<10 {
			return fmt.Errorf("after round %d: %d KiB of memory, %d after the first", round, now.memory, first.memory)
		}
		k.rounds++
	}
	if n%2 == 0 {
		if err := s.stop(); err != nil {
			return err
		}
		out, err := k.replayed(log)
		if err != nil || !bytes.Contains(out, []byte("identical")) {
			return fmt.Errorf("replay decisions: %w\n%s", err, out)
		}
		return nil
	}
	// Killed within its work.
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		until(over, soakClients, new(atomic.Int64), func(i int) { _ = echoed(s.url, fmt.Sprint("m", i%soakModels), "x", true) })
	}()
	time.Sleep(time.Second)
	err = s.kill()
	close(over)
	<-ended
	if out, failed := k.replayed(log); failed != nil {
		err = errors.Join(err, fmt.Errorf("replay decisions: %w\n%s", failed, out))
	}
	return err
}

// file has one model that gets no requests, and others. Policies take turns.
func (k *soak) file(life, models int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "listen: 127.0.0.1:0\ngpus: ['0', '1']\nretry: 0\nhealth: 0.5\nstate: state\nhost_memory_gb: 2\npolicy: {name: %s}\nmodels:\n", policies[life%len(policies)])
	for i := range models + 1 {
		name := fmt.Sprint("m", i-1)
		if i == 0 {
			name = "idle"
		}
		fmt.Fprintf(&out, "- {name: %s, memory: 0.4, slots: 2, deadline: 1, start: 0.1, service: 0.02, sleep: %d, asleep: 0.05, host_gb: 1, command: [%q, --listen, '127.0.0.1:{port}', --model, '{name}', --service, 20ms]}\n",
			name, i%3, k.stub())
	}
	return out.String()
}

// reread changes the configuration.
func (k *soak) reread(s *server, life, models int) error {
	if err := os.WriteFile(k.config(), []byte(k.file(life, models)), 0o600); err != nil {
		return err
	}
	return s.signal(syscall.SIGHUP, "reloaded")
}

// round lets clients ask for a time, and counts in asked those that wait for their answers and those that leave.
func (k *soak) round(s *server, life, round int, asked *[2]int64) error {
	if err := k.reread(s, life, soakModels); err != nil {
		return err
	}
	over, faults := make(chan struct{}), make(chan error, 1)
	go func() { // the only one who changes the file
		rng := rand.New(rand.NewPCG(k.seed, uint64(life<<20+round)))
		end := time.Now().Add(roundTime)
		var err error
		for i := 0; err == nil && time.Now().Before(end); i++ {
			time.Sleep(time.Duration(rng.IntN(800)) * time.Millisecond)
			if pids := s.processes("stub-engine"); len(pids) > 0 {
				_ = syscall.Kill(pids[rng.IntN(len(pids))], syscall.SIGKILL)
				k.kills.Add(1)
			}
			if i%5 == 4 {
				err = k.reread(s, life, soakModels-2*(i%2))
			}
		}
		close(over)
		faults <- err
	}()
	var waits, leaves, count atomic.Int64
	until(over, soakClients, &count, func(i int) {
		rng := rand.New(rand.NewPCG(k.seed+uint64(life<<20+round), uint64(i)))
		model, stream := fmt.Sprint("m", rng.IntN(soakModels)), rng.IntN(2) == 0
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		if rng.IntN(10) == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(40))*time.Millisecond)
			defer cancel()
			_, _ = stubengine.Ask(ctx, s.url, model, "x", stream)
			leaves.Add(1)
			return
		}
		prompt := fmt.Sprint("question ", i)
		if rng.IntN(40) == 0 {
			prompt = moods[rng.IntN(len(moods))]
		}
		k.judge(echoed(s.url, model, prompt, stream), &waits)
	})
	asked[0] += waits.Load()
	asked[1] += leaves.Load()
	k.left.Add(leaves.Load())
	err := <-faults
	if wrong := k.wrong.Load(); wrong != nil {
		err = errors.Join(err, *wrong)
	}
	return err
}

// judge counts the end of a request. Only answers and clear errors are right. The server does not count a request for a model that the file
// lacks at that moment.
func (k *soak) judge(err error, counted *atomic.Int64) {
	var status *stubengine.StatusError
	switch {
	case err == nil:
		k.good.Add(1)
	case errors.As(err, &status) && status.Status == http.StatusNotFound && strings.Contains(status.Body, "model_not_found"):
		k.unknown.Add(1)
		return
	case engineFailed(err):
		k.failed.Add(1)
	default:
		k.wrong.CompareAndSwap(nil, &err)
	}
	counted.Add(1)
}

// quiet removes all models but one that has no engine. It demands that the server is then as small as a fresh one, and that it has counted
// each request once.
func (k *soak) quiet(s *server, life int, fresh size, asked [2]int64) (now size, err error) {
	if err := k.reread(s, life, 0); err != nil {
		return now, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if now, err = s.size(k.work); err != nil {
			return now, err
		}
		left := len(s.processes(""))
		if left == 0 && now.goroutines <= fresh.goroutines+spare && now.descriptors <= fresh.descriptors+spare && now.files <= fresh.files {
			break
		}
		if time.Now().After(end) {
			return now, fmt.Errorf("%d processes of engines are left; the server has %+v, a fresh one %+v", left, now, fresh)
		}
	}
	if now.requests < asked[0] || now.requests > asked[0]+asked[1] {
		return now, fmt.Errorf("the server has counted %d requests; %d waited for their answers, and %d left", now.requests, asked[0], asked[1])
	}
	return now, s.empty()
}

// size is the resources that a server holds.
type size struct {
	goroutines, descriptors, files int
	memory                         int64 // KiB
	requests                       int64 // that it has counted
}

// size measures a server from outside, but for its goroutines.
func (s *server) size(folder string) (z size, err error) {
	http.DefaultClient.CloseIdleConnections()
	lines, err := s.metrics()
	if err != nil {
		return z, err
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		if name == "go_goroutines" {
			z.goroutines = int(n)
		}
		if strings.HasPrefix(name, "medusa_serve_requests_total{") {
			z.requests += n
		}
	}
	proc := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	list, err := os.ReadDir(proc + "fd")
	if err != nil {
		return z, err
	}
	z.descriptors = len(list)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return z, err
	}
	for line := range strings.Lines(string(status)) {
		if text, is := strings.CutPrefix(line, "VmRSS:"); is {
			z.memory, err = strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
		}
	}
	if z.goroutines == 0 || z.memory == 0 {
		return z, errors.Join(fmt.Errorf("the server does not tell its size: %+v", z), err)
	}
	return z, filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			z.files++
		}
		return nil // a file may go meanwhile
	})
}

// tail is the end of an output.
func tail(text string) string { return text[max(0, len(text)-4000):] }
