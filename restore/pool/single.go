package pool

import (
	"errors"
	"io"
	"slices"
)

// Single returns a pool for one start of a command: a process for the command itself, and one for each engine that spawns from it. All of them import
// at once, at the caller's priority and in the caller's folder. Each is made once, and a request waits for a process that still imports.
// In: a file, whose engines without a command are for any command; the interposer as for [Load]; the socket that this pool has instead of the file's.
// Fails: the file, as for Load; a file without an engine for the command itself.
func Single(file, library string, command []string, socket, folder string, log io.Writer) (*Pool, error) {
	spec, err := load(file, library, command)
	if err != nil {
		return nil, err
	}
	return single(spec, command, socket, folder, log)
}

func single(spec *Spec, command []string, socket, folder string, log io.Writer) (*Pool, error) {
	own := &Spec{Socket: socket}
	for i := range spec.Engines {
		e := &spec.Engines[i]
		if !slices.Equal(e.Command, command) {
			continue
		}
		// mutant: imports in the folder of the start
		e.Size, e.Folder = 1, folder
		own.Engines = append(own.Engines, *e)
	}
	if !slices.ContainsFunc(own.Engines, func(e Engine) bool { return !e.Spawned }) {
		return nil, errors.New("no engine there has this command")
	}
	p := New(own, log)
	p.made = map[*Engine]bool{}
	return p, nil
}

// once makes an engine's process, in a pool for one start.
func (p *Pool) once(e *Engine) {
	defer p.finished(e)
	p.make(e)
}

// coming reports whether a process that the start may get still imports, in a pool for one start. The caller holds the lock.
func (p *Pool) coming(s *start) bool {
	return p.made != nil && !p.closed && slices.ContainsFunc(p.engines(), func(e *Engine) bool {
		// mutant: no wait for what cannot fit
		return e.Spawned == s.spawned && !p.made[e] && len(e.keyDifferences(s)) == 0
	})
}

// finished wakes the requests that wait for a process, after it has become ready or has failed.
func (p *Pool) finished(e *Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[e] = true
	p.changed.Broadcast()
}
