package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"
)

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
	c := r.crowd(s)
	random := rand.New(rand.NewPCG(r.seed, 1<<32))
	var last size
	underLoad, grown, shrunk := 0, 0, 0
	var moved uint64
	var took time.Duration // with the wait for requests
	before := first.Mapped
	for range r.resizes {
		bytes := first.Least + random.Uint64N(r.recorded-first.Least)
		if c.busy.Load() > 0 {
			underLoad++
		}
		began := time.Now()
		if last, err = s.resize(bytes); err != nil {
			break
		}
		took += time.Since(began)
		moved += max(last.Mapped, before) - min(last.Mapped, before)
		if last.Mapped > before {
			grown++
		} else if last.Mapped < before {
			shrunk++
		}
		before = last.Mapped
	}
	if err = errors.Join(err, c.leave(), s.stop()); err != nil {
		return "", err
	}
	if onDevice, err := mapped(log); err != nil || onDevice != last.Mapped {
		return "", fmt.Errorf("the device's log has %d bytes mapped, the engine says %d: %v", onDevice, last.Mapped, err)
	}
	if underLoad < r.resizes*9/10 || grown == 0 || shrunk == 0 {
		return "", fmt.Errorf("%d of %d resizes under load, %d grown, %d shrunk: the run says nothing", underLoad, r.resizes, grown, shrunk)
	}
	return fmt.Sprintf("resizes=%d grown=%d shrunk=%d moved=%d MiB in %d ms answers=%d wrong=0 lost=0", r.resizes, grown, shrunk, moved>>20,
		took.Milliseconds(), c.answers.Load()), nil
}
