package restore

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"medusa/graphir"
)

func TestGuard(t *testing.T) {
	var stderr bytes.Buffer
	s := &Session{env: environment{run: Restore}, warn: &stderr, timings: timings{}}
	err := s.Guard(func() error {
		var spec *graphir.Spec
		_ = spec.Graphs
		return nil
	})
	var f *Fallback
	var panicked *PanicError
	if !errors.As(err, &f) || f.Code != Internal || !errors.As(err, &panicked) || !strings.Contains(panicked.Place, "TestGuard") {
		t.Errorf("a panic ended in %v", err)
	}
	if s.Restoring() || strings.Count(stderr.String(), "native start: internal") != 1 {
		t.Errorf("restoring %v, stderr %q", s.Restoring(), &stderr)
	}
	recording := &Session{env: environment{run: Record}, warn: &stderr}
	if err := recording.Guard(func() error { panic("at the disco") }); err == nil || errors.As(err, &f) && f != nil && recording.fallback != nil {
		t.Errorf("while recording: %v", err)
	}
	plain := errors.New("plain")
	if err := s.Guard(func() error { return plain }); err != plain {
		t.Errorf("an error became %v", err)
	}
}

// Programs are written by a goroutine: nobody but itself can catch its panic.
func TestPanicWhileWriting(t *testing.T) {
	spec := &graphir.Spec{Graphs: []graphir.Graph{{Label: "g", Nodes: []graphir.Node{{Type: graphir.NodeKernel}}}}} // no parameters: nothing that Validate lets through
	b := testBuilder(spec)
	var panicked *PanicError
	if _, err := b.build([][]int{{0}}); !errors.As(err, &panicked) {
		t.Errorf("got %v", err)
	}
}

// The size of a host buffer may be whatever a file says.
func TestArenaRefusesWhatNobodyHas(t *testing.T) {
	for _, size := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt - 1} {
		var a arena
		if _, err := a.bytes(size); err == nil {
			t.Errorf("%d bytes: no error", size)
			a.release()
		}
	}
}
