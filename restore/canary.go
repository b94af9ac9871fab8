package restore

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// checkLevel says what is checked before ready, beyond the allocation sequence, which always is.
type checkLevel int

const (
	checkNone   checkLevel = iota
	checkCanary            // each graph is replayed once on verification's data, and its results hashed
	checkFull              // and memory that nobody named is hashed
)

func readCheckLevel(text string) (checkLevel, error) {
	switch text {
	case "", "none":
		return checkNone, nil
	case "canary":
		return checkCanary, nil
	case "full":
		return checkFull, nil
	}
	return 0, fmt.Errorf("read MEDUSA_CHECK: %q is none of full, canary, none", text)
}

// CheckError says which check of a restored process did not give what verification had recorded.
type CheckError struct {
	Graph     string // empty: memory as the engine left it before its graphs were restored
	Got, Want string // SHA-256
}

func (e *CheckError) Error() string {
	if e.Graph == "" {
		return fmt.Sprintf("check unnamed memory: hash %.12s, verified %.12s", e.Got, e.Want)
	}
	return fmt.Sprintf("check graph %s: a replay on verification's data gives hash %.12s, verified %.12s", e.Graph, e.Got, e.Want)
}

// check makes the checks that the level asks for. Whatever they write is put back.
func (s *Session) check(r *restoration) error {
	if s.env.check == checkNone {
		return nil
	}
	c, err := newChecker(s.spec, r.memory, r.execs)
	if err != nil {
		return err
	}
	if s.env.check == checkFull {
		if err := s.checkUnnamed(c); err != nil {
			return err
		}
	}
	if s.env.verifying() {
		return nil // run V replays at ready
	}
	defer s.timings.start("check canary")()
	kept, err := c.keep()
	if err != nil {
		return err
	}
	return errors.Join(s.replayAll(c), c.putBack(kept))
}

// checkUnnamed hashes what the engine has left in memory that it did not name: skipped or extra work shows there. In a
// verifying run the hash is recorded.
func (s *Session) checkUnnamed(c *checker) error {
	defer s.timings.start("check memory")()
	ranges, err := c.hashAll(digest.Other)
	if err != nil {
		return err
	}
	got := digest.SumRanges(ranges)
	if s.env.verifying() {
		s.unnamed = got
		return nil
	}
	if want := s.artifact.Verification.Unnamed; want != "" && got != want {
		return &CheckError{"", got, want}
	}
	return nil
}

func (s *Session) replayAll(c *checker) (err error) {
	if err := c.takeSnapshot(); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stream.Destroy()) }()
	want := make(map[string]string)
	for _, g := range s.artifact.Verification.Graphs {
		want[g.Label] = g.Results
	}
	for i := range c.spec.Graphs {
		label := c.spec.Graphs[i].Label
		if want[label] == "" {
			continue // not deterministic natively, or an artifact that does not say
		}
		if err := c.fill(0); err != nil {
			return err
		}
		if err := errors.Join(c.execs[i].Launch(c.stream), c.stream.Synchronize()); err != nil {
			return fmt.Errorf("check graph %s: %w", label, err)
		}
		ranges, err := c.hashAll(digest.Results...)
		if err != nil {
			return err
		}
		if got := digest.SumRanges(ranges); got != want[label] {
			return &CheckError{label, got, want[label]}
		}
	}
	return nil
}

// keptPiece is what a replay may overwrite.
type keptPiece struct {
	addr uint64
	data []byte
}

// keep reads everything that filling and replaying may write: all but the weights, and of a large KV cache what is looked
// at, where the fills of block tables point.
func (c *checker) keep() ([]keptPiece, error) {
	var kept []keptPiece
	for _, s := range c.spans {
		if s.class == digest.Weight {
			continue
		}
		err := s.pieces(s.size+digest.ChunkBytes, func(from, size uint64) error {
			p := keptPiece{c.memory.base[s.alloc] + s.offset + from, make([]byte, size)}
			kept = append(kept, p)
			return cuda.CopyToHost(p.data, cuda.DevicePtr(p.addr))
		})
		if err != nil {
			return nil, fmt.Errorf("keep what a check may write: %w", err)
		}
	}
	return kept, nil
}

func (c *checker) putBack(kept []keptPiece) error {
	for _, p := range kept {
		if err := cuda.CopyToDevice(cuda.DevicePtr(p.addr), p.data); err != nil {
			return fmt.Errorf("put back what a check has written: %w", err)
		}
	}
	return nil
}
