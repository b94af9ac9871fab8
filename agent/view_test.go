package agent_test

import (
	"testing"

	"medusa/agent"
)

// The estimate includes the start of an engine if there is none, and uses measured times once there are any.
func TestDrain(t *testing.T) {
	m := newMachine(t, 2, []agent.Model{{Memory: 1, Slots: 2, Start: 7, Service: 3}}, nil)
	if got := m.Drain(0, 4); got != 7+4*3./2 {
		t.Errorf("without an engine: %v s", got)
	}
	for gpu := range 2 {
		d, wait := m.admit(gpu, 0)
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		m.Release(d, 5)
		if got, want := m.Drain(0, 4), 4*5./2/float64(gpu+1); got != want {
			t.Errorf("with %d engines: %v s, want %v", gpu+1, got, want)
		}
	}
}
