package pool

import (
	"io"
	"os"
	"testing"
)

// A process that one start has taken is never given to another, even if both ask at
// once.
func TestUsedOnce(t *testing.T) {
	e, f, s := sample(t)
	f.Pid = os.Getpid()
	p := New(&Spec{Engines: []Engine{*e}}, io.Discard)
	engine, waits := &p.spec.Engines[0], &waiter{facts: f}
	p.waiting[engine] = []*waiter{waits}
	if w, differences := p.pick(engine, s); w != waits {
		t.Errorf("the first start: got %v, %v", w, differences)
	}
	w, differences := p.pick(engine, s)
	if text := texts(differences); w != nil || len(text) != 1 || text[0] != "no process is ready" {
		t.Errorf("the second start: got %v, %q", w, text)
	}
}
