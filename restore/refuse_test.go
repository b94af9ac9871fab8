package restore

import (
	"bytes"
	"errors"
	"testing"
)

// What the engine refuses does not wait for an artifact, and is said once.
func TestRefuse(t *testing.T) {
	var said bytes.Buffer
	s := &Session{env: environment{run: Restore}, warn: &said, timings: make(timings), reading: make(chan read)}
	err := s.Refuse(errors.New("other graphs"))
	var f *Fallback
	if !errors.As(err, &f) || f.Code != Unsupported || s.Restoring() {
		t.Errorf("error %v, restoring %v", err, s.Restoring())
	}
	if again := s.Refuse(errors.New("and more")); !errors.Is(again, f.Reason) {
		t.Errorf("the second time: %v", again)
	}
	if want := "medusa: native start: unsupported: other graphs\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	if len(s.timings) != 0 {
		t.Errorf("spans %v", s.timings)
	}
}
