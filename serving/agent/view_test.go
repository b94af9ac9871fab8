package agent_test

import (
	"testing"

	"medusa/serving/agent"
	"medusa/serving/schedule"
	"medusa/test/stubengine"
)

// The estimate includes the start of an engine if there is none, and uses measured times if there are any.
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

// Starts, and sleepers that copy their weights, disturb the GPU behind the same switch. Light models disturb it less than
// heavy ones.
func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		name            string
		level           int
		wake, service   float64
		falling, waking schedule.Traffic
	}{
		{"a heavy model", 1, 2, 1, schedule.Heavy, schedule.Heavy},
		{"a light model", 1, 1, 2, schedule.Light, schedule.Light},
		{"a model that reads its files again", 2, 1, 2, schedule.Quiet, schedule.Cold},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, on := make(chan string), make(chan struct{})
			m := newMachine(t, 1, []agent.Model{{Memory: 1, Slots: 1, Sleep: c.level, Host: 1, Wake: c.wake, Service: c.service}, {Memory: 1, Slots: 1}}, func(_, fn int, s *stubengine.Stub) {
				if observe := s.Observe; fn == 0 {
					s.Observe = func(what string) {
						observe(what)
						if what != "stop" {
							at <- what
							<-on
						}
					}
				}
			})
			steps := []struct {
				fn   int
				want schedule.Traffic // while m0 is brought to another state
			}{{0, schedule.Cold}, {1, c.falling}, {0, c.waking}}
			for _, step := range steps {
				d, wait := m.admit(0, step.fn)
				what := <-at
				if got := m.Traffic(0); got != step.want {
					t.Errorf("%s: traffic %d, want %d", what, got, step.want)
				}
				on <- struct{}{}
				if err := wait(); err != nil {
					t.Fatal(err)
				}
				m.Release(d, 0)
			}
			if got := m.Traffic(0); got != schedule.Quiet {
				t.Errorf("awake: traffic %d", got)
			}
		})
	}
}
