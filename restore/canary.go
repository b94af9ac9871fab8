package restore

import (
	"errors"
	"fmt"

	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/status"
)

// checkLevel is the extent of the checks before ready, beyond the allocation sequence, which is always checked.
type checkLevel int

const (
	checkNone   checkLevel = iota
	checkCanary            // each graph is replayed once on verification's data, and its results hashed
	checkFull              // and memory that is to stay unchanged is hashed
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
	return 0, fmt.Errorf("read "+contract.EnvCheck+": %q is none of full, canary, none", text)
}

// CheckError names the check of a restored process whose result was not the one that verification had recorded.
type CheckError struct {
	Graph     string // empty: memory that no replay changed when the artifact was verified
	Got, Want string // SHA-256
}

func (e *CheckError) Error() string {
	if e.Graph == "" {
		return fmt.Sprintf("check memory that stays unchanged: hash %.12s, verified %.12s", e.Got, e.Want)
	}
	return fmt.Sprintf("check graph %s: a replay on verification's data gives hash %.12s, verified %.12s", e.Graph, e.Got, e.Want)
}

// hashing names the place at which checks have hashed memory.
type hashing struct {
	where string // as in status.Status
	why   error  // it was not the device
}

// check makes the checks that the level asks for. Whatever they write is put back.
func (s *Session) check(r *restoration) (err error) {
	if s.env.check == checkNone {
		return nil
	}
	c, err := s.newChecker(r.memory, r.execs)
	if err != nil {
		return err
	}
	if s.env.verifying() { // run V: Ready replays, and compares
		s.untouched, err = c.hashAll(digest.StaysUnchanged...)
		return err
	}
	if err := s.chooseHash(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.hasher.close()) }()
	if s.env.check == checkFull {
		if err := s.checkUnchanged(c); err != nil {
			return err
		}
	}
	done := s.timings.start("canary data")
	kept, err := c.keep()
	if err == nil {
		err = c.takeSnapshot()
	}
	if err == nil {
		err = c.prepare(false)
	}
	done()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stream.Destroy()) }()
	s.restored = r // the engine may ask for tensors before a replay
	err = s.replayAll(c)
	s.restored = nil
	defer s.timings.start("canary data")()
	// mutant: what a canary replay writes is put back
	return errors.Join(err, putBack(kept))
}

// chooseHash has memory hashed on the device or, if that is impossible and the context is not lost, on the host.
func (s *Session) chooseHash(c *checker) error {
	defer s.timings.start("load hash")()
	err := c.hasher.useDevice(c.spans)
	// mutant: hashes of the host if the device refuses
	if cuda.Sticky(err) {
		return err
	}
	s.hashing = hashing{status.OnDevice, err}
	if err != nil {
		s.hashing.where = status.OnHost
	}
	return nil
}

// checkUnchanged hashes the memory that neither the engine nor a graph is to change between the restore and serving: memory that
// nobody named, which skipped or extra work changes, and restored contents.
func (s *Session) checkUnchanged(c *checker) error {
	v := digest.Unchanged{Chunks: s.artifact.Verification.UnchangedChunks, Sum: s.artifact.Verification.Unchanged}
	if v.Sum == "" {
		return nil // an artifact that does not say
	}
	defer s.timings.start("hash memory")()
	ranges, err := c.hashAll(digest.StaysUnchanged...)
	if err != nil {
		return err
	}
	got, err := v.SumOf(ranges)
	if err != nil {
		return err
	}
	// mutant: hash of memory that stays unchanged
	if got != v.Sum {
		return &CheckError{"", got, v.Sum}
	}
	return nil
}

// replayAll replays each graph once, on the data of verification's first replay, and compares its results.
func (s *Session) replayAll(c *checker) error {
	want := make(map[string]string)
	for _, g := range s.artifact.Verification.Graphs {
		want[g.Label] = g.Canary
	}
	for i := range c.spec.Graphs {
		label := c.spec.Graphs[i].Label
		if want[label] == "" {
			continue // not deterministic natively, or an artifact that does not say
		}
		got, err := s.replayOnce(c, i)
		if err != nil {
			return fmt.Errorf("check graph %s: %w", label, err)
		}
		// mutant: canary replay before ready
		if got != want[label] {
			return &CheckError{label, got, want[label]}
		}
	}
	return nil
}

func (s *Session) replayOnce(c *checker, graph int) (string, error) {
	done := s.timings.start("canary data")
	err := c.fill(0)
	done()
	if err != nil {
		return "", err
	}
	done = s.timings.start("canary replay")
	err = c.replay(graph)
	done()
	if err != nil {
		return "", err
	}
	defer s.timings.start("canary hash")()
	ranges, err := c.hashOf(graph, digest.Results...)
	return digest.SumRanges(ranges), err
}

// keep reads everything that filling and replaying may write: all but the weights, and of a large KV cache the chunks that are
// looked at, to which the fills of block tables point.
func (c *checker) keep() ([]keptPiece, error) {
	var kept []keptPiece
	for _, s := range c.spans {
		if s.class == digest.Weight {
			continue
		}
		err := s.pieces(s.size+s.chunk, func(from, size uint64) error {
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
