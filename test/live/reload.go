package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"medusa/test/stubengine"
)

// reloads is how often the configuration changes. A third of the files has a mistake.
const reloads = 9

// staying are the models that every file has.
const staying = 3

// reload changes the configuration while clients ask for models that stay: each gets its answer. Engines that the last file lacks end.
func (r *run) reload(list []question) error {
	s, log, err := r.serve("{name: mqfq}", models)
	if err != nil {
		return err
	}
	var failed atomic.Pointer[error]
	var count atomic.Int64
	over, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		until(over, atATime, &count, func(i int) {
			if err := checked(list, i, staying, s.url); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}()
	for i := range reloads {
		said, err := "reloaded", error(nil)
		switch i % 3 {
		case 0:
			err = r.configure("{name: torpor}", "'1', '2'", models+1)
		case 1:
			said, err = "the configuration stays as it is", os.WriteFile(r.config(), []byte("gpus: []\n"), 0o600)
		case 2:
			err = r.configure("{name: lalbo3}", "'0'", staying)
		}
		if err := errors.Join(err, s.signal(syscall.SIGHUP, said)); err != nil {
			return fmt.Errorf("reload %d: %w", i, err)
		}
		for from, end := count.Load(), time.Now().Add(patience); count.Load() < from+2*atATime; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) || failed.Load() != nil {
				break
			}
		}
	}
	close(over)
	<-asked
	if err := failed.Load(); err != nil {
		return fmt.Errorf("a model that stays: %w\n%s", *err, s.output())
	}
	var status *stubengine.StatusError
	if _, err := list[0].ask(s.url, fmt.Sprint("m", staying), false); !errors.As(err, &status) || status.Status != http.StatusNotFound {
		return fmt.Errorf("a model that has left: %w", err)
	}
	for end := time.Now().Add(patience); len(s.processes("reference")) > staying; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d engines are left on one GPU with %d models", len(s.processes("reference")), staying)
		}
	}
	if err := s.stop(); err != nil {
		return err
	}
	return r.replay(log)
}

// signal sends a signal, and waits until the process has said a line more with some words.
func (s *server) signal(which syscall.Signal, words string) error {
	before := strings.Count(s.output(), words)
	if err := s.cmd.Process.Signal(which); err != nil {
		return err
	}
	for end := time.Now().Add(patience); strings.Count(s.output(), words) == before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("after %v it does not say %q\n%s", which, words, s.output())
		}
	}
	return nil
}
