package restore

import (
	"bytes"
	"errors"
	"testing"
)

// An engine's refusal does not wait for an artifact, and is said once.
func TestRefuse(t *testing.T) {
	var said bytes.Buffer
	s := &Session{env: environment{run: Restore}, journal: journal{warn: &said, timings: make(timings)}, source: source{reading: make(chan read)}}
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
	if len(s.journal.timings) != 0 {
		t.Errorf("spans %v", s.journal.timings)
	}
}

// A reason may quote an artifact's texts. Those move no cursor and set no title.
func TestLinesAreText(t *testing.T) {
	evil := errors.New("gpu.name\x1b]0;title\a\u009b2J\u202e differs")
	var said bytes.Buffer
	s := &Session{env: environment{run: Restore}, journal: journal{warn: &said, timings: make(timings)}}
	_ = s.fall(&Fallback{Incompatible, evil})
	if want := "medusa: native start: incompatible: gpu.name\\x1b]0;title\\a\\u009b2J\\u202e differs\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	if s.fallback.Reason != evil {
		t.Errorf("the reason became %v", s.fallback.Reason)
	}
	said.Reset()
	recording := &Session{env: environment{run: Record}, journal: journal{warn: &said}}
	_ = recording.Guard(func() error { panic(evil) })
	if got := said.String(); got == "" || bytes.ContainsAny(said.Bytes(), "\x1b\a\u009b\u202e") {
		t.Errorf("said %q", got)
	}
}
