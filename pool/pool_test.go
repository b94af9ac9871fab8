package pool

import (
	"io"
	"os"
	"testing"
)

// A process that a start has taken is no other start's, however soon that one comes.
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
