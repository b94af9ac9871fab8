package schedule

import "testing"

// A request with its own deadline is judged by that, not by its function's.
func TestOwnDeadline(t *testing.T) {
	p := newTorpor([]float64{10}, Topology{})
	for i, row := range []struct {
		latency, own float64
		met          int
	}{{9, 0, 1}, {11, 0, 0}, {9, 5, 0}, {4, 5, 1}, {11, 20, 1}} {
		before := p.met[0]
		p.Done(0, Completion{Request: Request{ID: i}, Latency: row.latency, Deadline: row.own})
		if got := int(p.met[0] - before); got != row.met {
			t.Errorf("latency %g with a deadline of its own of %g: met %d, want %d", row.latency, row.own, got, row.met)
		}
	}
}
