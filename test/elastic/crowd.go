package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// clients ask an engine at a time: more than the smallest cache takes.
const clients = 24

// crowd is the clients of one engine.
type crowd struct {
	answers, wrong, lost atomic.Int64
	busy                 atomic.Int64 // requests on their way

	failures sync.Map
	over     chan struct{}
	all      sync.WaitGroup
}

// crowd lets clients ask an engine for texts of any length, one after another.
func (r *run) crowd(s *server) *crowd {
	c := &crowd{over: make(chan struct{})}
	texts := slices.Sorted(maps.Keys(r.want))
	for i := range clients {
		c.all.Go(func() {
			random := rand.New(rand.NewPCG(r.seed, uint64(i)))
			for {
				select {
				case <-c.over:
					return
				default:
				}
				prompt, n := texts[random.IntN(len(texts))], 1+random.IntN(most)
				c.busy.Add(1)
				ids, err := s.ask(prompt, n)
				c.busy.Add(-1)
				c.answers.Add(1)
				switch {
				case err != nil:
					c.lost.Add(1)
					c.failures.Store(err.Error(), true)
				case !slices.Equal(ids, r.want[prompt][:n]):
					c.wrong.Add(1)
				}
			}
		})
	}
	return c
}

// leave waits for the last answers. All have to be right.
func (c *crowd) leave() error {
	close(c.over)
	c.all.Wait()
	if c.wrong.Load() == 0 && c.lost.Load() == 0 && c.answers.Load() >= clients {
		return nil
	}
	text := ""
	c.failures.Range(func(k, _ any) bool { text = fmt.Sprint(k); return false })
	return fmt.Errorf("%d answers, %d wrong, %d lost %s", c.answers.Load(), c.wrong.Load(), c.lost.Load(), text)
}
