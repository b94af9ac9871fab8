package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"medusa/test/checkpoints"
	"medusa/test/stubengine"
)

// faults kills engines and servers, and lets clients vanish.
func (r *run) faults() (string, error) {
	list, err := r.questions()
	if err != nil {
		return "", fmt.Errorf("the engine alone: %w", err)
	}
	answered, failed, err := r.killEngines(list)
	if err != nil {
		return "", fmt.Errorf("engines are killed: %w", err)
	}
	if err := r.vanish(list); err != nil {
		return "", fmt.Errorf("clients vanish: %w", err)
	}
	if err := r.reload(list); err != nil {
		return "", fmt.Errorf("the configuration changes: %w", err)
	}
	others, err := r.broken()
	if err != nil {
		return "", err
	}
	if err := r.killServers(list); err != nil {
		return "", fmt.Errorf("the server is killed: %w", err)
	}
	return fmt.Sprintf("killed-engines=%d answered=%d failed-clearly=%d vanished-clients=%d reloads=%d killed-servers=%d %s orphans=0",
		r.kills, answered, failed, r.clients, reloads, r.deaths, others), nil
}

// killEngines kills engines while clients ask. Each request gets its answer, or an error that says why. Afterwards all is well.
func (r *run) killEngines(list []question) (answered, failed int32, err error) {
	s, log, err := r.serve("{name: mqfq}", models)
	if err != nil {
		return 0, 0, err
	}
	var good, clear atomic.Int32
	var wrong atomic.Pointer[error]
	over := make(chan struct{})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		rng := rand.New(rand.NewPCG(r.seed, 9))
		for n := 0; n < r.kills; {
			if pids := s.processes("reference"); len(pids) > 0 {
				_ = syscall.Kill(pids[rng.IntN(len(pids))], syscall.SIGKILL)
				n++
			}
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		}
		close(over)
	}()
	var count atomic.Int64
	until(over, atATime, &count, func(i int) {
		err := checked(list, i, models, s.url)
		switch {
		case err == nil:
			good.Add(1)
		case engineFailed(err):
			clear.Add(1)
		default:
			wrong.CompareAndSwap(nil, &err)
		}
	})
	<-killed
	for i := range models { // an engine that was killed last may be found dead by one more request
		if err := checked(list, i, models, s.url); err != nil {
			err = fmt.Errorf("after the last kill: %w", err)
			wrong.CompareAndSwap(nil, &err)
		}
	}
	if err := s.stop(); err != nil {
		return 0, 0, err
	}
	if err := wrong.Load(); err != nil {
		return 0, 0, fmt.Errorf("%w\n%s", *err, s.output())
	}
	return good.Load(), clear.Load(), r.replay(log)
}

// engineFailed reports whether an error tells a client clearly that its engine has failed: by its status, by the last event of a stream, or by
// the end of the connection within an answer that has begun.
func engineFailed(err error) bool {
	var status *stubengine.StatusError
	var answer *wrongAnswer
	switch {
	case errors.As(err, &answer):
		return false
	case errors.As(err, &status):
		return status.Status == http.StatusBadGateway && strings.Contains(status.Body, "engine_failed")
	}
	return strings.Contains(err.Error(), "error in the stream") || errors.Is(err, io.ErrUnexpectedEOF)
}

// vanish has clients that leave before and within streams. Afterwards the engines have all their memory, and the server no request.
func (r *run) vanish(list []question) error {
	s, log, err := r.serve("{name: mqfq}", models)
	if err != nil {
		return err
	}
	each(r.clients, atATime, func(i int) {
		rng := rand.New(rand.NewPCG(r.seed, uint64(i)))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Duration(rng.IntN(400))*time.Millisecond, cancel)
		body := fmt.Sprintf(`{"model": "m%d", "prompt": "And", "max_tokens": 250, "ignore_eos": true, "stream": true}`, i%models)
		_, _ = stubengine.Post(ctx, s.url+"/v1/completions", []byte(body), true)
	})
	for i := range 2 * models {
		q, model := &list[i], i%models
		if text, err := q.ask(s.url, fmt.Sprint("m", model), false); err != nil || text != q.want[model%len(checkpoints.Names)] {
			return fmt.Errorf("afterwards: %q, %v", text, err)
		}
	}
	if err := s.empty(); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return r.replay(log)
}

// killServers kills the server at random moments. No engine may be left.
func (r *run) killServers(list []question) error {
	for n := range r.deaths {
		s, log, err := r.serve("{name: lalbo3}", models)
		if err != nil {
			return err
		}
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			each(models, models, func(i int) { _, _ = list[i].ask(s.url, fmt.Sprint("m", i), true) })
		}()
		rng := rand.New(rand.NewPCG(r.seed, uint64(n)))
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		if err := s.kill(); err != nil {
			return fmt.Errorf("kill %d: %w", n, err)
		}
		if out, err := r.replayed(log); err != nil && !bytes.Contains(out, []byte("unexpected EOF")) { // killed before its first line
			return fmt.Errorf("kill %d: replay: %w\n%s", n, err, out)
		}
		<-asked
	}
	return nil
}
