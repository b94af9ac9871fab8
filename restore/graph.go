package restore

import "medusa/internal/cuda"

// Graph is one restored executable graph. It stays valid until its session is closed.
type Graph struct {
	label   string
	batch   int64
	exec    cuda.GraphExec
	session *Session
}

// Label returns the label that the engine gave the graph when it was recorded.
func (g *Graph) Label() string { return g.label }

// Batch returns the number of sequences that the graph decodes.
func (g *Graph) Batch() int64 { return g.batch }

// Exec returns the CUgraphExec, for engines that launch by themselves.
func (g *Graph) Exec() cuda.GraphExec { return g.exec }

// Launch enqueues the graph on a stream of the current context (cuGraphLaunch). A sticky device error ends the
// process, see Session.Failed.
func (g *Graph) Launch(stream cuda.Stream) error { return g.launch(stream) }
