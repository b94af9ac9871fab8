package pool

import (
	"context"
	"io"
	"testing"
	"time"
)

// A request waits for imports only if their process can become its start.
func TestSingleWaits(t *testing.T) {
	for value, waits := range map[string]bool{"4": true, "8": false} {
		e, _, s := sample(t)
		e.Command = []string{"serve"}
		p, err := single(&Spec{Engines: []Engine{*e}}, e.Command, "socket", ".", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		s.environment["OMP_NUM_THREADS"] = value
		took, cancel := context.WithCancel(t.Context())
		go func() {
			p.take(s)
			cancel()
		}()
		patience := 10 * time.Second
		if waits {
			patience = 200 * time.Millisecond
		}
		select {
		case <-took.Done():
			if waits {
				t.Error("a request did not wait")
			}
		case <-time.After(patience):
			if !waits {
				t.Error("a request waited for a process that cannot fit")
			}
		}
		p.finished(p.engines()[0])
		<-took.Done()
	}
}
