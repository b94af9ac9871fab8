package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// clients ask at a time: more than the smallest cache takes.
const clients = 24

// load resizes a restored engine at random while clients ask. Every answer has to be right, and every size as asked.
func (r *run) load() (string, error) {
	log := filepath.Join(r.work, "calls-load")
	s, err := r.serve([]string{"SIMGPU_CALL_LOG=" + log}, r.medusa(r.engine("serve", "--kv", "elastic", "--listen", "127.0.0.1:0"),
		"restore", "--addresses", "relocate", r.artifact))
	if err != nil {
		return "", err
	}
	var first size
	if err := s.call("GET", "/kv_cache", nil, &first); err != nil {
		return "", errors.Join(err, s.stop())
	}
	var answers, wrong, lost, busy atomic.Int64
	var failures sync.Map
	over := make(chan struct{})
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(r.seed, uint64(i)))
			texts := slices.Sorted(maps.Keys(r.want))
			for {
				select {
				case <-over:
					return
				default:
				}
				prompt, n := texts[random.IntN(len(texts))], 1+random.IntN(most)
				busy.Add(1)
				ids, err := s.ask(prompt, n)
				busy.Add(-1)
				answers.Add(1)
				switch {
				case err != nil:
					lost.Add(1)
					failures.Store(err.Error(), true)
				case !slices.Equal(ids, r.want[prompt][:n]):
					wrong.Add(1)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(r.seed, 1<<32))
	var last size
	underLoad, grown, shrunk := 0, 0, 0
	before := first.Mapped
	for range r.resizes {
		bytes := first.Least + random.Uint64N(r.recorded-first.Least)
		if busy.Load() > 0 {
			underLoad++
		}
		if last, err = s.resize(bytes); err != nil {
			break
		}
		if last.Mapped > before {
			grown++
		} else if last.Mapped < before {
			shrunk++
		}
		before = last.Mapped
	}
	close(over)
	all.Wait()
	if err = errors.Join(err, s.stop()); err != nil {
		return "", err
	}
	if onDevice, err := mapped(log); err != nil || onDevice != last.Mapped {
		return "", fmt.Errorf("the device's log has %d bytes mapped, the engine says %d: %v", onDevice, last.Mapped, err)
	}
	if wrong.Load() != 0 || lost.Load() != 0 {
		text := ""
		failures.Range(func(k, _ any) bool { text = fmt.Sprint(k); return false })
		return "", fmt.Errorf("%d answers, %d wrong, %d lost %s", answers.Load(), wrong.Load(), lost.Load(), text)
	}
	if underLoad < r.resizes*9/10 || grown == 0 || shrunk == 0 || answers.Load() < int64(clients) {
		return "", fmt.Errorf("%d of %d resizes under load, %d grown, %d shrunk, %d answers: the run says nothing", underLoad, r.resizes, grown, shrunk, answers.Load())
	}
	return fmt.Sprintf("resizes=%d grown=%d shrunk=%d answers=%d wrong=0 lost=0", r.resizes, grown, shrunk, answers.Load()), nil
}
