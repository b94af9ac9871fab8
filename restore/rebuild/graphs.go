// Package rebuild makes executable graphs from an artifact's graphs.
//
// In: a graphir.Spec, and the places of the engine's memory in this process (restore/memory). Out: Graphs, one executable graph each, with
// the memory of the capture phase and its contents. Fails: with the name of an object that this process lacks, or has otherwise than
// recorded, or of a driver call. Undo then leaves the process as a native start needs it.
package rebuild

import (
	"errors"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/internal/panics"
	"medusa/restore/live"
	"medusa/restore/memory"
	"medusa/restore/status"
)

// Graphs are an artifact's executable graphs in this process, and everything that was made for them. The steps from Resolve to Build are
// made in this order. If one fails, Undo takes all of them back.
type Graphs struct {
	Memory      *memory.Map
	Execs       []cuda.GraphExec // by graph; 0 until a lazy one is used
	Found       []KernelFound    // in the order of the artifact's table
	Collectives Collectives      // nil: the engine makes no calls of a communicator

	spec      *graphir.Spec
	owned     owned
	addresses addresses
	functions []cuda.Function // by kernel
	reloaded  []live.Module   // from their images
	before    []attribute     // of kernels, which recorded ones replace
	modules   []uint64        // handles of the engine's modules and libraries that graphs refer to
	events    []uint64        // handles of the engine's events that graphs refer to
	templates int
	lazy      *builder // makes graphs at their first use; nil if all were made before ready
	validity  validity
	kept      kept // asleep
}

// New begins to make the graphs of an artifact over the engine's memory.
func New(m *memory.Map) *Graphs {
	return &Graphs{Memory: m, spec: m.Spec, owned: owned{memory: m}}
}

// Resolve finds the kernels, and the variables of modules.
func (g *Graphs) Resolve() error {
	finder, err := newResolver(g.spec)
	if err != nil {
		return err
	}
	defer func() { // in a panic, too: Undo needs them
		g.reloaded, g.before, g.Found, g.modules = finder.reloaded, finder.before, finder.found, finder.used
	}()
	g.functions, err = finder.resolve()
	if err == nil {
		err = finder.globals(g.Memory)
	}
	return err
}

// FindEvents finds the engine's events, which have to be created in the recorded order.
func (g *Graphs) FindEvents() (err error) {
	g.events, err = engineEvents(g.spec)
	return err
}

// Allocate makes the memory of the capture phase.
func (g *Graphs) Allocate() error {
	return live.InTrigger(func() error {
		err := errors.Join(g.owned.allocate(), g.owned.allocateHost())
		if err == nil {
			g.addresses, err = compareAddresses(g.Memory)
		}
		return err
	})
}

// Fill writes the saved contents.
func (g *Graphs) Fill() error { return live.InTrigger(g.owned.fillContents) }

// Build makes the graphs, or, for lazy, leaves each to its first use.
func (g *Graphs) Build(lazy bool) (err error) {
	b := &builder{spec: g.spec, memory: g.Memory, functions: g.functions, events: g.events, collectives: g.Collectives}
	if b.context, err = cuda.CurrentContext(); err != nil {
		return err
	}
	// mutant: graphs built at their first use
	if lazy {
		g.Execs, g.lazy = make([]cuda.GraphExec, len(g.spec.Graphs)), b
		return g.watchOnce()
	}
	groups, err := groupByShape(g.spec)
	if err != nil {
		return err
	}
	if g.Execs, err = b.build(groups); err != nil {
		return err
	}
	g.templates = len(groups)
	if err := g.watchOnce(); err != nil {
		return err
	}
	// Uploads are asynchronous; an error among them has to show before the decision to restore is final.
	return cuda.Stream(0).Synchronize()
}

// Built returns a graph's executable, which is made at the first use.
func (g *Graphs) Built(graph int) (cuda.GraphExec, error) {
	if g.Execs[graph] != 0 {
		return g.Execs[graph], nil
	}
	execs, err := g.lazy.build([][]int{{graph}})
	if err != nil {
		return 0, err
	}
	g.Execs[graph] = execs[graph]
	return g.Execs[graph], cuda.Stream(0).Synchronize()
}

// Undo leaves the process as a native start needs it, or says that it could not.
func (g *Graphs) Undo() error {
	err := panics.Catch(func() error {
		return live.InTrigger(func() error {
			// mutant: variables put back after a failed restore
			err := memory.PutBack(g.owned.kept)
			// mutant: attributes put back after a failed restore
			err = errors.Join(err, putAttributesBack(g.before))
			return errors.Join(err, g.destroy())
		})
	})
	if panicked, ok := err.(*panics.Error); ok {
		return &memory.SpoiltError{Cause: panicked}
	}
	return err
}

// Destroy gives everything back. No graph may be running.
func (g *Graphs) Destroy() error { return live.InTrigger(g.destroy) }

// destroy gives everything back in reverse order.
func (g *Graphs) destroy() error {
	return errors.Join(destroyExecs(g.Execs), g.owned.free(), unload(g.reloaded))
}

// Describe adds the facts about the restored graphs to the status of the start.
func (g *Graphs) Describe(st *status.Status) {
	st.Reloaded = len(g.reloaded)
	st.Addresses, st.Relocated = status.Relocated, g.addresses.why
	if g.addresses.exact {
		st.Addresses = status.Exact
	}
	st.Graphs, st.Templates, st.Kernels, st.Allocations = len(g.Execs), g.templates, len(g.Found), len(g.owned.allocations)
	st.Found = map[string]int{}
	for _, k := range g.Found {
		st.Found[k.How]++
	}
	for i := range g.spec.Graphs {
		st.Nodes += g.spec.Nodes(i)
	}
}

// FindVariables gives the variables of modules their addresses in a process that has captured its graphs itself.
func FindVariables(m *memory.Map) error {
	r, err := newResolver(m.Spec)
	if err == nil {
		err = r.globals(m)
	}
	return err
}
