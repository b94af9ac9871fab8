package pool

import (
	"errors"
	"io"
	"slices"
)

// Single returns a pool for one start of a command: a process for the command itself, which imports nothing first, and a process for each engine that
// spawns from it, which imports while the command runs. Each is made once, at the caller's priority, and a request waits for the one that still imports.
// In: a file whose engines without a command are for any, the interposer as for [Load], and the socket that this pool has instead of the file's. What can
// fail: the file, as Load does; a file without an engine for the command itself.
func Single(file, library string, command []string, socket string, log io.Writer) (*Pool, error) {
	spec, err := load(file, library, command)
	if err != nil {
		return nil, err
	}
	own := &Spec{Socket: socket}
	// The command's process is made first: it is wanted at once.
	for _, spawned := range []bool{false, true} {
		for _, e := range spec.Engines {
			if e.Spawned != spawned || !slices.Equal(e.Command, command) {
				continue
			}
			if e.Size = 1; !spawned {
				e.Modules = nil
			}
			own.Engines = append(own.Engines, e)
		}
	}
	if len(own.Engines) == 0 || own.Engines[0].Spawned {
		return nil, errors.New("no engine there has this command")
	}
	p := New(own, log)
	p.made = map[*Engine]bool{}
	return p, nil
}

// coming reports whether a pool for one start has yet to finish a process of this role. The caller holds the lock.
func (p *Pool) coming(spawned bool) bool {
	return p.made != nil && !p.closed && slices.ContainsFunc(p.engines(), func(e *Engine) bool { return e.Spawned == spawned && !p.made[e] })
}

// finished ends the wait of requests for a process that has become ready, or has failed.
func (p *Pool) finished(e *Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil {
		p.made[e] = true
		p.changed.Broadcast()
	}
}
