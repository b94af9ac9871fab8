package check

import (
	"errors"
	"fmt"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// rounds is the number of replays of a graph that are compared. Their inputs are equal. Memory that a graph has to write before it reads it
// holds different bytes in each.
const rounds = 2

// fillings is the number of ways to fill memory: one for each round, and two like the first round but with other inputs or another KV cache.
const (
	otherInputs = rounds + iota
	otherKV
	fillings
)

// prepare makes the data that memory is filled with: tensor data and resolved contents. For a native run it also makes other inputs and
// another KV cache. It creates the stream of the replays.
func (c *Checker) prepare(native bool) (err error) {
	type handedKey struct {
		alloc uint32
		dtype graphir.DType
	}
	handed := map[handedKey][]byte{}
	for i, s := range c.spans {
		if s.handed != 0 {
			key := handedKey{s.alloc, s.handed}
			if handed[key] == nil {
				handed[key] = handedData(s.handed, s.alloc)
			}
			c.knows(i, &known{pattern: pattern{data: handed[key]}, first: s.offset})
			continue
		}
		if s.tensor == noTensor || s.class == digest.Weight || s.scratch() {
			continue
		}
		t := &c.spec.Tensors[s.tensor]
		fill := func(variant int) (*known, error) {
			data, err := tensorData(t, seedOf(purposeTensor, t.At.Index, t.At.Offset, variant))
			return &known{pattern: pattern{data: data}, first: s.offset + s.shift}, err
		}
		k, err := fill(0)
		if err != nil {
			return err
		}
		c.knows(i, k)
		switch {
		case s.poisoned() && s.row != 0:
			c.fills[1][i] = &known{pattern: pattern{data: poisonAgain(k.data)}, first: k.first}
		case s.class == digest.Input && native:
			c.fills[otherInputs][i], err = fill(otherInputs)
		case s.class == digest.KV && native:
			c.fills[otherKV][i], err = fill(otherKV)
		}
		if err != nil {
			return err
		}
	}
	for i := range c.spec.Contents {
		if err := c.saveContent(&c.spec.Contents[i]); err != nil {
			return err
		}
	}
	for i, s := range c.spans {
		if data := c.saved[s]; data != nil {
			c.knows(i, &known{pattern: pattern{data: data}})
		}
	}
	c.stream, err = cuda.StreamCreate(cuda.StreamNonBlocking)
	return err
}

// knows sets the fill of a span for every replay.
func (c *Checker) knows(span int, k *known) {
	for filling := range c.fills {
		c.fills[filling][span] = k
	}
}

// doubt marks the spans for which touched is true: until they are hashed again, they may no longer hold their fill.
func (c *Checker) doubt(touched func(*span) bool) {
	for i := range c.spans {
		if !touched(&c.spans[i]) {
			continue
		}
		c.zeroed[i] = false
		if k := c.fills[c.filling][i]; k != nil {
			k.unsure = true
		}
	}
}

// scratch reports whether a span gets garbage.
func (s *span) scratch() bool { return s.class == digest.Temporary || s.class == digest.Unstable }

// garbageOf returns the pattern of a round, which is made once.
func (c *Checker) garbageOf(round int) *pattern {
	p := &c.garbage[round]
	if p.data == nil {
		p.data = make([]byte, patternBytes)
		garbage(p.data, seedOf(purposeGarbage, 0, 0, round))
	}
	return p
}

// fill puts all memory but the weights into the state that a replay starts from. Garbage is renewed everywhere: a graph may get to memory by
// pointers that only the engine knows.
func (c *Checker) fill(filling int) error {
	c.filling = filling
	// mutant: other garbage before the second replay
	round := filling
	if filling >= rounds {
		round = 0
	}
	for _, s := range c.spans {
		if !s.scratch() {
			continue
		}
		// Each span begins elsewhere in the pattern.
		at := seedOf(purposeGarbage, s.alloc, s.offset, round)
		if err := c.garbageOf(round).put(c.Memory.Base[s.alloc]+s.offset, at.below(patternBytes), s.size); err != nil {
			return err
		}
	}
	for i, s := range c.spans {
		k := c.fills[filling][i]
		if k == nil {
			continue
		}
		for _, other := range c.fills {
			if other[i] != k {
				other[i].filled = false
			}
		}
		if err := k.fill(s, c.Memory.Base[s.alloc]+s.offset); err != nil {
			return fmt.Errorf("%s memory at %d of allocation %d: %w", s.class, s.offset, s.alloc, err)
		}
	}
	return errors.Join(c.zero(), cuda.Synchronize())
}

// zero clears the parts of a KV cache that no check reads. The self test and other replays write there, and a graph may read all of it.
func (c *Checker) zero() error {
	if c.keepsCache {
		return nil
	}
	for i, s := range c.spans {
		// mutant: KV cache that no check looks at
		if c.zeroed[i] {
			continue
		}
		if err := s.gaps(func(from, size uint64) error {
			return cuda.MemsetAsync(cuda.DevicePtr(c.Memory.Base[s.alloc]+s.offset+from), 0, size, 0)
		}); err != nil {
			return fmt.Errorf("clear KV cache: %w", err)
		}
		c.zeroed[i] = true
	}
	return nil
}
