package gateway

import (
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/test/stubengine"
)

// Torpor places a model on the GPU whose neighbour copies
// least.
func TestNeighbours(t *testing.T) {
	text := `gpus: ['0', '1', '2']
neighbours: [['0', '1']]
policy: {name: torpor}
models:
- {name: m0, command: [engine, '{port}'], deadline: 5}
- {name: m1, command: [engine, '{port}'], deadline: 5}
`
	started := make(chan struct{})
	f := start(t, text, func(fn int, s *stubengine.Stub) {
		if observe := s.Observe; fn == 0 {
			s.Observe = func(what string) {
				observe(what)
				if what == "start" {
					<-started
				}
			}
		}
	})
	first := make(chan error)
	go func() {
		_, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false)
		first <- err
	}()
	for f.agent.Standing(0, 0).State != agent.Starting {
		time.Sleep(time.Millisecond)
	}
	_, err := stubengine.Ask(t.Context(), f.url, "m1", "x", false)
	close(started)
	if err != nil || f.agent.Standing(2, 1).State != agent.Awake {
		t.Errorf("%v; beside a GPU that starts an engine, m1 is %s; elsewhere it is %s", err, f.agent.Standing(1, 1).State, f.agent.Standing(2, 1).State)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}
