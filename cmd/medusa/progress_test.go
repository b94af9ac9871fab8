package main

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// said is a writer that a test reads while others write.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// The seconds of a long step are shown until it ends, and not after that.
func TestStepsShowSeconds(t *testing.T) {
	for _, row := range []struct {
		width int
		want  string
	}{
		{0, `(?m)^\[2/6\] record, \d+ s$`},
		{80, `\r\[2/6\] record, \d+ s\x1b\[K`},
		{14, `\r\[2/6\] record\x1b\[K`},
	} {
		width := func() int { return row.width }
		if row.width == 0 {
			width = nil
		}
		out := &said{}
		step, done := newSteps(out, width, 2*time.Millisecond)
		step(0, 6, "profile")
		step(1, 6, "record")
		for began := time.Now(); !regexp.MustCompile(row.want).MatchString(out.String()) && time.Since(began) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		done()
		text := out.String()
		if !regexp.MustCompile(row.want).MatchString(text) || row.width == 0 && !strings.HasPrefix(text, "[1/6] profile\n") {
			t.Errorf("width %d: %q, want %s", row.width, text, row.want)
		}
		time.Sleep(20 * time.Millisecond)
		if later := out.String(); later != text {
			t.Errorf("width %d: wrote %q after the end", row.width, strings.TrimPrefix(later, text))
		}
	}
}
