package check

import (
	"errors"
	"fmt"
	"time"

	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/live"
)

// Steps are functions that an engine can provide for a check of its graphs. Each takes a graph's label. Without them, a check finds less.
type Steps struct {
	// BeforeReplay restores the data that the engine writes before each replay of this graph to its state at the graph's capture: attention
	// metadata, counters, lengths. It runs no forward. It may allocate memory, but not from memory that the engine's framework keeps in its
	// pools, because bytes there are compared.
	BeforeReplay func(label string) error
	// Eager runs the complete step of the graph without a graph.
	Eager func(label string) error
}

// overdueError is a replay that did not end. Its kernel still runs: the process cannot use its context any more.
type overdueError struct {
	graph string
	after time.Duration
	fill  int // which way memory was filled before it, counted from 0
}

func (e *overdueError) Error() string {
	return fmt.Sprintf("replay graph %q: not done after %s (memory was filled in way %d of %d)", e.graph, e.after, e.fill+1, fillings)
}

// replay launches one graph on filled memory and waits for it, but not for ever. If the replay does not end, a timer ends the process,
// because a driver may block the thread that asks for a stream's state as long as the kernel runs.
func (c *Checker) replay(graph int) error {
	label := c.spec.Graphs[graph].Label
	if c.Steps.BeforeReplay != nil {
		// mutant: state that the engine writes before a replay
		err := live.InTrigger(func() error { return errors.Join(c.Steps.BeforeReplay(label), cuda.Synchronize()) })
		if err != nil {
			return fmt.Errorf("build the state before a replay: %w", err)
		}
		c.doubt(func(s *span) bool { return s.class == digest.Input || s.class == digest.Other })
	}
	c.doubt(func(s *span) bool { return c.reach[graph].has(s.alloc) })
	if c.Overdue != nil {
		timer := time.AfterFunc(c.Patience, func() { c.Overdue(&overdueError{label, c.Patience, c.filling}) })
		defer timer.Stop()
	}
	return errors.Join(c.Execs[graph].Launch(c.stream), c.stream.Synchronize())
}

// replayTwice replays one graph on equal inputs and different garbage. In a native run it also looks for results that are not finite, and
// measures by how much results vary. A restored graph needs neither, because its results have to equal the native ones. The number of
// replays for that measurement depends on this rank's results, so it leaves out graphs with collective calls.
func (c *Checker) replayTwice(graph int) (digest.Graph, error) {
	g := &c.spec.Graphs[graph]
	out := digest.Graph{Label: g.Label, Batch: g.Batch}
	classes := []digest.Class{digest.KV, digest.Input, digest.Output, digest.Permanent, digest.Other, digest.Temporary, digest.Unstable}
	if total(c.spans, digest.Weight) <= weightsHashedAlways {
		classes = append(classes, digest.Weight)
	}
	for round := range rounds {
		if err := c.fill(round); err != nil {
			return out, fmt.Errorf("fill memory: %w", err)
		}
		if err := c.replay(graph); err != nil {
			return out, err
		}
		ranges, err := c.hashOf(graph, classes...)
		if err != nil {
			return out, err
		}
		if round == 0 {
			out.Ranges = ranges
			if graph == 0 {
				if err := c.crossCheck(ranges, classes); err != nil {
					return out, err
				}
			}
			if c.Native {
				if err := c.findNotFinite(graph, &out); err != nil {
					return out, err
				}
			}
		} else {
			for i := range out.Ranges {
				second(&out.Ranges[i], ranges[i])
			}
		}
		if c.Varying[out.Label] && !c.Native {
			if err := c.keepVarying(out.Ranges, round == 0); err != nil {
				return out, err
			}
		}
	}
	if c.Native && !c.spec.HasCollectives(graph) {
		return out, c.measureVariation(graph, &out)
	}
	return out, nil
}

// stepEagerly notes which parts of outputs the engine's own step writes, if it can make one without a graph.
func (c *Checker) stepEagerly(graph int, out *digest.Graph) error {
	if c.Steps.Eager == nil {
		return nil
	}
	if err := c.fill(0); err != nil {
		return err
	}
	err := live.InTrigger(func() error { return errors.Join(c.Steps.Eager(out.Label), cuda.Synchronize()) })
	if err != nil {
		return fmt.Errorf("make the step without a graph: %w", err)
	}
	c.doubt(func(*span) bool { return true })
	ranges, err := c.hashOf(graph, digest.Output)
	if err != nil {
		return err
	}
	out.Stepped = true
	for _, r := range ranges {
		find(out.Ranges, &r).Eager = r.Written
	}
	return nil
}
