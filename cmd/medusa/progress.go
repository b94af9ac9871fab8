package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// steps shows which step of a command runs, and for how long already. On a terminal it is one line, which is written anew. Otherwise it is a line at the
// step's beginning and one from time to time, since a step may take minutes. At a step's end a line shows how long it took.
type steps struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int // of the terminal; nil: none
	i, n  int
	what  string
	began time.Time
	end   chan struct{}
	ended sync.WaitGroup
}

const (
	liveEvery = time.Second
	lineEvery = 30 * time.Second
)

// progress shows steps on standard error. If live is false they are always lines.
func progress(w io.Writer, live bool) (step func(i, n int, what string), done func()) {
	f, ok := w.(*os.File)
	if live && ok && term.IsTerminal(int(f.Fd())) {
		return newSteps(w, func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return width
		}, liveEvery)
	}
	return newSteps(w, nil, lineEvery)
}

func newSteps(w io.Writer, width func() int, every time.Duration) (step func(i, n int, what string), done func()) {
	s := &steps{w: w, width: width, end: make(chan struct{})}
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
	return s.step, s.done
}

func (s *steps) step(i, n int, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took()
	s.i, s.n, s.what, s.began = i, n, what, time.Now()
	s.write("[%d/%d] %s", i+1, n, what)
}

// write writes a line that may be written over on a terminal. A longer one would begin a second line there.
func (s *steps) write(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.width == nil {
		fmt.Fprintln(s.w, text)
		return
	}
	if most := max(1, s.width()-1); len(text) > most {
		text = text[:most]
	}
	fmt.Fprintf(s.w, "\r%s\x1b[K", text)
}

// took prints the time of the step that has ended, if one has begun.
func (s *steps) took() {
	if s.n == 0 {
		return
	}
	s.write("[%d/%d] %s: %.1f s", s.i+1, s.n, s.what, time.Since(s.began).Seconds())
	if s.width != nil {
		fmt.Fprintln(s.w)
	}
}

func (s *steps) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n > 0 {
		s.write("[%d/%d] %s, %d s", s.i+1, s.n, s.what, int(time.Since(s.began).Seconds()))
	}
}

// done ends the display and prints the last step's time. No line follows.
func (s *steps) done() {
	close(s.end)
	s.ended.Wait()
	s.took()
}
