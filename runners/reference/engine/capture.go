package engine

import (
	"errors"
	"fmt"
	"slices"

	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
)

// makeGraphs restores the graphs if there is an artifact, and warms up and captures those that are not restored,
// the largest batch first: the arena then grows once.
func (e *Engine) makeGraphs() error {
	e.session.Provide(restore.Steps{Eager: func(label string) error {
		for _, batch := range e.options.BatchSizes {
			if label == graphLabel(batch) {
				return e.eagerStep(batch, e.config.Layers)
			}
		}
		return fmt.Errorf("step without a graph: there is none for %s", label)
	}})
	capturing := false
	if e.session.Restoring() && e.options.Start == StartNative {
		e.begin(marks.Capture)
		capturing = true
		var graphs []*restore.Graph
		err := marks.Medusa(func() (err error) {
			graphs, err = e.session.Graphs()
			return err
		})
		if err == nil {
			for _, g := range graphs {
				e.graphs[int(g.Batch())] = g
			}
			e.restored = true
		} else if e.session.Exit() != nil || cuda.Sticky(err) {
			return err
		}
	}
	for _, batch := range slices.Backward(e.options.BatchSizes) {
		if e.graphs[batch] != nil || e.options.Start == StartNoGraphs {
			continue
		}
		// Calls that must not happen in a capture (loading modules, choosing algorithms) happen in the warm-up.
		if err := e.eagerStep(batch, e.config.Layers); err != nil {
			return fmt.Errorf("warm up batch size %d: %w", batch, err)
		}
		if !capturing {
			e.begin(marks.Capture)
			capturing = true
		}
		if err := e.capture(batch); err != nil {
			return fmt.Errorf("capture batch size %d: %w", batch, err)
		}
	}
	if !capturing {
		e.begin(marks.Capture)
	}
	return nil
}

// eagerStep runs a decode step over the first rows of the static inputs as single launches, with temporaries of its
// own, and waits for it.
func (e *Engine) eagerStep(rows, layers int) error {
	var t temporaries
	a, err := e.newActivations(&t, rows, 0)
	if err == nil {
		err = e.forward(e.buffers.inputs(rows), a, layers, e.buffers.logits, e.buffers.next)
	}
	if err == nil {
		err = e.device.compute.Synchronize()
	}
	return errors.Join(err, t.release())
}

// capture makes the graph of a batch size.
func graphLabel(batch int) string { return fmt.Sprintf("decode-%d", batch) }

func (e *Engine) capture(batch int) error {
	a, err := e.newActivations(&e.arena, batch, 0)
	defer e.arena.reset()
	if err != nil {
		return err
	}
	marks.Graph(graphLabel(batch), batch)
	if err := e.device.compute.BeginCapture(cuda.CaptureGlobal); err != nil {
		return err
	}
	launched := e.forward(e.buffers.inputs(batch), a, e.config.Layers, e.buffers.logits, e.buffers.next)
	// The capture has to end, whatever happened in it.
	graph, err := e.device.compute.EndCapture()
	if err := errors.Join(launched, err); err != nil {
		return err
	}
	exec, err := e.instantiate(graph)
	if err := errors.Join(err, graph.Destroy()); err != nil {
		return err
	}
	e.captured = append(e.captured, exec)
	e.graphs[batch] = exec
	return nil
}

func (e *Engine) instantiate(graph cuda.Graph) (cuda.GraphExec, error) {
	nodes, err := graph.NodeCount()
	if err != nil {
		return 0, err
	}
	exec, err := graph.Instantiate(0)
	if err != nil {
		return 0, err
	}
	e.nodes += nodes
	return exec, exec.Upload(e.device.compute)
}
