package check

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// Sample holds hashes of the results of a process's graphs, for a comparison with the same process after a sleep.
type Sample struct {
	Results map[string]string // hash of the results of a replay on verification's data, by label
	weights string            // hash of the weights that they were computed with
	memory  string            // hash of the memory that graphs keep for themselves
}

// Sample replays the wanted graphs whose results do not vary. It puts back the memory that it writes.
func (c *Checker) Sample(wanted func(label string) bool) (found *Sample, err error) {
	c.keepsCache = true
	// Without this, the copies here could run beside work of the engine's streams.
	if err := cuda.Synchronize(); err != nil {
		return nil, err
	}
	if err := c.chooseHash(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.hasher.close()) }()
	weights, err := c.sumWeights()
	if err != nil {
		return nil, err
	}
	memory, err := c.hashAll(digest.Permanent)
	if err != nil {
		return nil, err
	}
	found = &Sample{make(map[string]string), weights, digest.SumRanges(memory)}
	return found, c.onKnownData(func() (err error) {
		for i := range c.spec.Graphs {
			label := c.spec.Graphs[i].Label
			if !wanted(label) || c.Varying[label] {
				continue
			}
			if found.Results[label], err = c.replayOnce(i); err != nil {
				return fmt.Errorf("check graph %s: %w", label, err)
			}
		}
		return nil
	})
}

// Compare returns an *Error if graphs keep other contents than before, or compute other results. same says that the weights have to be as
// they were. With other weights, results are not compared. The check then shows only that the graphs could be replayed.
func (c *Sample) Compare(before *Sample, same bool) error {
	// mutant: memory of graphs after a sleep
	if c.memory != before.memory {
		return &Error{"", c.memory, before.memory}
	}
	// mutant: canary with other weights
	if c.weights != before.weights && !same {
		return nil
	}
	if c.weights != before.weights {
		return &Error{"", c.weights, before.weights}
	}
	for label, want := range before.Results {
		// mutant: canary after a sleep
		if got := c.Results[label]; got != want {
			return &Error{label, got, want}
		}
	}
	return nil
}
