package restore

import "medusa/internal/cuda"

// Graph is one restored executable graph. It stays valid until its session is closed.
type Graph struct {
	label   string
	batch   int64
	index   int
	exec    cuda.GraphExec
	session *Session
}

// Label returns the label that the engine gave the graph when it was recorded.
func (g *Graph) Label() string { return g.label }

// Batch returns the number of tokens that the graph computes, which for a decode step is that of sequences. Several graphs may
// share one.
func (g *Graph) Batch() int64 { return g.batch }

// Built returns the CUgraphExec, for engines that launch by themselves and ask Usable before: a lazy graph has none until
// then.
func (g *Graph) Built() cuda.GraphExec { return g.exec }

// Usable returns nil, or the *InvalidError that Launch would return. A lazy graph is built.
func (g *Graph) Usable() error { return g.ready() }

// Launch enqueues the graph on a stream of the current context (cuGraphLaunch); a lazy graph is built at its first launch.
// An *InvalidError says that the graph is of no use any more, and the engine is to do without. A sticky device error ends
// the process, see Session.Failed.
func (g *Graph) Launch(stream cuda.Stream) error { return g.launch(stream) }
