package main

import (
	"errors"
	"fmt"
	"path/filepath"
)

// The trade, in pages of each range: two engines have a small and a large cache by turns. The memory that changes hands is 30 % of the device.
// Beside both caches, there is room for the engines, but not for two large caches.
const (
	device = 1 << 30
	minor  = 3
	moved  = (device*30/100 + ranges*page - 1) / (ranges * page)
	major  = minor + moved
	room   = moved / 2
)

// trade lets two restored engines of one device give 30 % of its memory to each other and back, while clients ask both. A third process has
// the rest of the device.
func (r *run) trade() (result string, err error) {
	if pagesOf(major) > r.recorded {
		return "", fmt.Errorf("%d bytes were recorded, the trade needs %d", r.recorded, pagesOf(major))
	}
	env := []string{"SIMGPU_SHARED=" + filepath.Join(r.work, "device"), fmt.Sprintf("SIMGPU_NEIGHBOUR=%d", device-pagesOf(major+minor+room))}
	var engines []*server
	for i, pages := range []uint64{major, minor} {
		argv := r.engine("serve", "--kv", "elastic", "--kv-mapped-bytes", fmt.Sprint(pagesOf(pages)), "--listen", "127.0.0.1:0")
		s, err := r.serve(append(env, "SIMGPU_CALL_LOG="+r.tradeLog(i)), r.medusa(argv, "restore", "--addresses", "relocate", r.artifact))
		if err != nil {
			return "", errors.Join(err, stopAll(engines))
		}
		engines = append(engines, s)
	}
	result, err = r.trading(engines[0], engines[1])
	if err = errors.Join(err, stopAll(engines)); err != nil {
		return "", err
	}
	for i, pages := range []uint64{major, minor} {
		if onDevice, err := mapped(r.tradeLog(i)); err != nil || onDevice != pagesOf(pages) {
			return "", fmt.Errorf("the device's log has %d bytes mapped by engine %d: %v", onDevice, i, err)
		}
	}
	return result, nil
}

func (r *run) tradeLog(engine int) string {
	return filepath.Join(r.work, fmt.Sprintf("calls-trade-%d", engine))
}

func stopAll(engines []*server) (err error) {
	for _, s := range engines {
		err = errors.Join(err, s.stop())
	}
	return err
}

// trading begins and ends with a large cache of the first engine.
func (r *run) trading(first, second *server) (string, error) {
	one, two := r.crowd(first), r.crowd(second)
	underLoad := 0
	err := full(second)
	for round := 0; round < r.rounds && err == nil; round++ {
		for _, t := range []struct{ from, to *server }{{first, second}, {second, first}} {
			if one.busy.Load() > 0 && two.busy.Load() > 0 {
				underLoad++
			}
			if err = hand(t.from, t.to); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = full(second)
	}
	if err = errors.Join(err, one.leave(), two.leave()); err != nil {
		return "", err
	}
	if underLoad < 2*r.rounds*9/10 {
		return "", fmt.Errorf("%d of %d trades under load: the run says nothing", underLoad, 2*r.rounds)
	}
	return fmt.Sprintf("rounds=%d moved=%d%% answers=%d wrong=0 lost=0", r.rounds, moved*ranges*page*100/device, one.answers.Load()+two.answers.Load()), nil
}

// full demands that an engine cannot have a large cache while the other one has one.
func full(s *server) error {
	_, err := s.resize(pagesOf(major))
	var no *refusal
	if !errors.As(err, &no) || no.status != 500 {
		return fmt.Errorf("both engines have large caches: %v", err)
	}
	return nil
}

// hand moves memory from one engine to another.
func hand(from, to *server) error {
	if _, err := from.resize(pagesOf(minor)); err != nil {
		return err
	}
	_, err := to.resize(pagesOf(major))
	return err
}
