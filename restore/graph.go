package restore

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
)

// Graph is one restored executable graph. It stays valid until its session is closed.
type Graph struct {
	label   string
	batch   int64
	index   int
	session *Session
}

// InvalidError says that a graph must not or cannot be replayed, though the device is fine: the engine runs eagerly, or
// captures anew.
type InvalidError struct {
	Graph string
	Cause error
}

func (e *InvalidError) Error() string { return fmt.Sprintf("replay graph %s: %v", e.Graph, e.Cause) }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Cause }

// Label returns the label that the engine gave the graph when it was recorded.
func (g *Graph) Label() string { return g.label }

// Batch returns the number of tokens that the graph computes, which for a decode step is that of sequences. Several graphs may
// share one.
func (g *Graph) Batch() int64 { return g.batch }

// Built returns the CUgraphExec, for engines that launch by themselves and ask Usable before: a lazy graph has none until then.
// After a sleep it is another one.
func (g *Graph) Built() cuda.GraphExec {
	if r := g.session.restored; r != nil {
		return r.Execs[g.index]
	}
	return 0
}

// Usable returns nil, or the *InvalidError or *Exit that Launch would return. A lazy graph is built.
func (g *Graph) Usable() error {
	r := g.session.restored
	if r == nil {
		return &InvalidError{g.label, errors.New("the session is closed")}
	}
	if err := g.session.checkAwake(r); err != nil {
		return err
	}
	if err := r.Usable(); err != nil {
		return &InvalidError{g.label, err}
	}
	if _, err := r.Built(g.index); err != nil {
		if err = g.session.Failed(err); g.session.exit != nil {
			return err
		}
		return &InvalidError{g.label, err}
	}
	return nil
}

// Launch enqueues the graph on a stream of the current context (cuGraphLaunch); a lazy graph is built at its first launch.
// An *InvalidError says that the graph is unusable from now on, and the engine has to do without it. A sticky device error
// is an *Exit, see Session.Failed.
func (g *Graph) Launch(stream cuda.Stream) error {
	if err := g.Usable(); err != nil {
		return err
	}
	// mutant: stream of a launch
	if err := g.Built().Launch(stream); err != nil {
		return g.session.Failed(err)
	}
	return nil
}

// Invalidate ends the use of all restored graphs: the engine has done something that they cannot follow (weights at
// other addresses, another adapter). Frees of memory, unloads of modules and ends of events that a graph refers to are noticed without it.
func (s *Session) Invalidate(cause error) {
	if s.restored != nil {
		s.restored.Invalidate(cause)
	}
}
