package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"medusa/test/calllog"
)

// The resizes in which calls fail, in pages of each range: one grows the cache by small to large, the other takes that back.
const (
	small = 2
	large = 4
)

func pagesOf(n uint64) uint64 { return n * ranges * page }

// faults fails each call that maps or unmaps in a resize, one in each process. The engine has to refuse the resize, serve the right tokens at
// its old size, and resize at the next request.
func (r *run) faults() (string, error) {
	const each = (large - small) * ranges // calls of one resize
	still, err := r.calls()
	if err != nil {
		return "", err
	}
	resized, err := r.calls(pagesOf(large), pagesOf(small))
	if err != nil {
		return "", err
	}
	faults := 0
	for _, call := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap"} {
		before := calllog.Count(still, call)
		if n := calllog.Count(resized, call) - before; n != each {
			return "", fmt.Errorf("two resizes made %d calls of %s", n, call)
		}
		if call == "cuMemUnmap" {
			before = 0 // it unmaps only at its end
		}
		for nth := before + 1; nth <= before+each; nth++ {
			if err := r.fault(call, nth); err != nil {
				return "", fmt.Errorf("call %d of %s fails: %w", nth, call, err)
			}
			faults++
		}
	}
	return fmt.Sprintf("faults=%d", faults), nil
}

// calls returns the driver calls of an engine that serves a while with some resizes.
func (r *run) calls(resizes ...uint64) ([]calllog.Entry, error) {
	path := filepath.Join(r.work, fmt.Sprintf("calls-faults-%d", len(resizes)))
	s, err := r.small([]string{"SIMGPU_CALL_LOG=" + path})
	if err != nil {
		return nil, err
	}
	for _, bytes := range resizes {
		if _, err := s.resize(bytes); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	if err := s.stop(); err != nil {
		return nil, err
	}
	log, err := calllog.Read(path)
	if err != nil {
		return nil, err
	}
	return log.Entries, nil
}

// small serves with a small cache.
func (r *run) small(env []string) (*server, error) {
	return r.serve(env, r.engine("serve", "--kv", "elastic", "--kv-mapped-bytes", fmt.Sprint(pagesOf(small)), "--start", "no-graphs", "--listen", "127.0.0.1:0"))
}

func (r *run) fault(call string, nth int) error {
	s, err := r.small([]string{fmt.Sprintf("SIMGPU_FAIL=%s:%d:CUDA_ERROR_OUT_OF_MEMORY", call, nth)})
	if err != nil {
		return err
	}
	return errors.Join(r.refused(s, call), s.stop())
}

func (r *run) refused(s *server, call string) error {
	to, back := pagesOf(large), pagesOf(small)
	if call == "cuMemUnmap" {
		if _, err := s.resize(to); err != nil {
			return err
		}
		to, back = back, to
	}
	_, err := s.resize(to)
	var no *refusal
	if !errors.As(err, &no) || no.status != 500 {
		return fmt.Errorf("the resize ends with %v", err)
	}
	var now size
	if err := s.call("GET", "/kv_cache", nil, &now); err != nil {
		return err
	}
	if now.Mapped != back {
		return fmt.Errorf("%d bytes are mapped, there were %d", now.Mapped, back)
	}
	for _, prompt := range slices.Sorted(maps.Keys(r.want))[:3] {
		ids, err := s.ask(prompt, most)
		if err != nil {
			return err
		}
		if !slices.Equal(ids, r.want[prompt]) {
			return fmt.Errorf("prompt %q: got %v, want %v", prompt, ids, r.want[prompt])
		}
	}
	_, err = s.resize(to)
	return err
}
