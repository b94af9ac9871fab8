package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// steps shows which step of a command runs, and for how long already. On a terminal it is a bar, otherwise a line at the step's
// beginning and one from time to time, since a step may take minutes. At a step's end a line shows how long it took.
type steps struct {
	mu    sync.Mutex
	w     io.Writer
	bar   *progressbar.ProgressBar // nil: lines are printed instead
	i, n  int
	what  string
	began time.Time
	end   chan struct{}
	ended sync.WaitGroup
}

const (
	barEvery  = time.Second
	lineEvery = 30 * time.Second
)

// progress shows steps on standard error. If bar is false they are always lines.
func progress(w io.Writer, bar bool) (step func(i, n int, what string), done func()) {
	f, ok := w.(*os.File)
	if bar && ok && term.IsTerminal(int(f.Fd())) {
		return newSteps(w, true, barEvery)
	}
	return newSteps(w, false, lineEvery)
}

func newSteps(w io.Writer, bar bool, every time.Duration) (step func(i, n int, what string), done func()) {
	s := &steps{w: w, end: make(chan struct{})}
	s.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.tick()
			case <-s.end:
				return
			}
		}
	})
	return func(i, n int, what string) { s.step(i, n, what, bar) }, s.done
}

func (s *steps) step(i, n int, what string, bar bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took()
	s.i, s.n, s.what, s.began = i, n, what, time.Now()
	if !bar {
		fmt.Fprintf(s.w, "[%d/%d] %s\n", i+1, n, what)
		return
	}
	if s.bar == nil {
		s.bar = progressbar.NewOptions(n, progressbar.OptionSetWriter(s.w), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(24), progressbar.OptionShowCount())
	}
	s.bar.Describe(what)
	s.bar.Set(i)
}

// took prints the time of the step that has ended, if one has begun.
func (s *steps) took() {
	if s.n == 0 {
		return
	}
	if s.bar != nil {
		s.bar.Clear()
	}
	fmt.Fprintf(s.w, "[%d/%d] %s: %.1f s\n", s.i+1, s.n, s.what, time.Since(s.began).Seconds())
}

func (s *steps) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := int(time.Since(s.began).Seconds())
	switch {
	case s.n == 0: // no step has begun
	case s.bar != nil:
		s.bar.Describe(fmt.Sprintf("%s, %d s", s.what, took))
	default:
		fmt.Fprintf(s.w, "[%d/%d] %s, %d s\n", s.i+1, s.n, s.what, took)
	}
}

// done ends the display and prints the last step's time. No line follows.
func (s *steps) done() {
	close(s.end)
	s.ended.Wait()
	s.took()
	if s.bar != nil {
		s.bar.Finish()
	}
}
