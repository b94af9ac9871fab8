package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// The pressure, in pages of each range: so many are to be free, and another engine takes a part of them.
const (
	floor = 16
	taken = 10
)

// pressure has a restored engine with a floor give way to another one, which asks for memory and gives it back, while clients ask both.
func (r *run) pressure() (result string, err error) {
	env := []string{"SIMGPU_SHARED=" + filepath.Join(r.work, "pressed"), fmt.Sprintf("SIMGPU_NEIGHBOUR=%d", device-pagesOf(major+floor+minor))}
	start := func(name string, more ...string) (*server, error) {
		argv := r.engine("serve", append([]string{"--kv", "elastic", "--listen", "127.0.0.1:0"}, more...)...)
		return r.serve(append(env, "SIMGPU_CALL_LOG="+filepath.Join(r.work, name)), r.medusa(argv, "restore", "--addresses", "relocate", r.artifact))
	}
	gives, err := start("calls-gives", "--kv-mapped-bytes", fmt.Sprint(pagesOf(major)), "--kv-free-floor", fmt.Sprint(pagesOf(floor)))
	if err != nil {
		return "", err
	}
	takes, err := start("calls-takes", "--kv-mapped-bytes", fmt.Sprint(pagesOf(minor)))
	if err != nil {
		return "", errors.Join(err, gives.stop())
	}
	result, err = r.pressing(gives, takes)
	return result, errors.Join(err, gives.stop(), takes.stop())
}

func (r *run) pressing(gives, takes *server) (string, error) {
	one, two := r.crowd(gives), r.crowd(takes)
	// The engine grows by half of the free memory that it sees, so that a page or two of each range stay free.
	before, err := gives.settles(0, pagesOf(rows))
	for round := 0; round < 3 && err == nil; round++ {
		if _, err = takes.resize(pagesOf(minor + taken)); err != nil {
			break
		}
		if _, err = gives.settles(before-pagesOf(taken+2), before-pagesOf(taken-2)); err != nil {
			break
		}
		if _, err = takes.resize(pagesOf(minor)); err != nil {
			break
		}
		_, err = gives.settles(before-pagesOf(2), before+pagesOf(2))
	}
	if err = errors.Join(err, one.leave(), two.leave()); err != nil {
		return "", err
	}
	return fmt.Sprintf("pressed=3 answers=%d wrong=0 lost=0", one.answers.Load()+two.answers.Load()), nil
}

// settles waits until a cache has a size between two bounds and keeps it for a while.
func (s *server) settles(low, high uint64) (uint64, error) {
	const still = 5 // times in a row
	var last size
	same := 0
	for end := time.Now().Add(patience); ; time.Sleep(300 * time.Millisecond) {
		var now size
		if err := s.call("GET", "/kv_cache", nil, &now); err != nil {
			return 0, err
		}
		if same++; now != last {
			same = 0
		}
		if last = now; same >= still && now.Mapped >= low && now.Mapped <= high {
			return now.Mapped, nil
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("the cache has %d bytes, not between %d and %d", now.Mapped, low, high)
		}
	}
}
