package restore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/internal/panics"
)

func TestGuard(t *testing.T) {
	var stderr bytes.Buffer
	s := &Session{env: environment{run: Restore}, journal: journal{warn: &stderr, timings: timings{}}}
	err := s.Guard(func() error {
		var spec *graphir.Spec
		_ = spec.Graphs
		return nil
	})
	var f *Fallback
	var panicked *panics.Error
	if !errors.As(err, &f) || f.Code != Internal || !errors.As(err, &panicked) || !strings.Contains(panicked.Place, "TestGuard") {
		t.Errorf("a panic ended in %v", err)
	}
	if s.Restoring() || strings.Count(stderr.String(), "native start: internal") != 1 {
		t.Errorf("restoring %v, stderr %q", s.Restoring(), &stderr)
	}
	recording := &Session{env: environment{run: Record}, journal: journal{warn: &stderr}}
	if err := recording.Guard(func() error { panic("at the disco") }); err == nil || errors.As(err, &f) && f != nil && recording.fallback != nil {
		t.Errorf("while recording: %v", err)
	}
	plain := errors.New("plain")
	if err := s.Guard(func() error { return plain }); err != plain {
		t.Errorf("an error became %v", err)
	}
}
