package check

import (
	"errors"
	"fmt"
	"slices"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/memory"
	"medusa/restore/status"
)

// Level is the extent of the checks before ready, beyond the allocation sequence, which is always checked.
type Level int

const (
	None   Level = iota
	Canary       // each graph is replayed once on verification's data, and its results hashed
	Full         // and memory that is to stay unchanged is hashed
)

// ReadLevel reads the name of a level.
func ReadLevel(text string) (Level, error) {
	switch text {
	case "", "none":
		return None, nil
	case "canary":
		return Canary, nil
	case "full":
		return Full, nil
	}
	return 0, fmt.Errorf("read "+contract.EnvCheck+": %q is none of full, canary, none", text)
}

// Error names the check of a restored process whose result differs from the result that verification recorded.
type Error struct {
	graph     string // empty: memory that no replay changed when the artifact was verified
	got, want string // SHA-256
}

func (e *Error) Error() string {
	if e.graph == "" {
		return fmt.Sprintf("check memory that stays unchanged: hash %.12s, verified %.12s", e.got, e.want)
	}
	return fmt.Sprintf("check graph %s: a replay on verification's data gives hash %.12s, verified %.12s", e.graph, e.got, e.want)
}

// Hashing names the place at which checks have hashed memory.
type Hashing struct {
	Where string // as in status.Status
	Why   error  // it was not the device
}

// BeforeReady makes the checks that the level asks for, against the results of verification. It puts back the memory that it writes, except
// the parts of a large KV cache that no check reads. These hold zeros afterwards, because no request has written to them yet. With other
// weights than verification's, no result is compared: the check shows only that the graphs can be replayed. agree is called when only the replays are left to do. If it fails, no graph is replayed.
func (c *Checker) BeforeReady(level Level, want *artifacts.Verification, agree func() error) (err error) {
	if level == None {
		return nil
	}
	if err := c.chooseHash(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.hasher.close()) }()
	if want.Weights != "" { // not in artifacts of earlier releases
		weights, err := c.sumWeights()
		if err != nil {
			return err
		}
		// mutant: checks of a start with other weights
		c.OtherWeights = weights != want.Weights
	}
	if level == Full && !c.OtherWeights {
		if err := c.checkUnchanged(want); err != nil {
			return err
		}
	}
	return c.onKnownData(func() error {
		// mutant: ranks agree on the replays of a check
		if err := agree(); err != nil {
			return err
		}
		return c.replayAll(want)
	})
}

// Replayed names the graphs with collective calls that BeforeReady replays. All ranks have to replay the same ones.
func Replayed(spec *graphir.Spec, level Level, verified *artifacts.Verification) (labels []string) {
	for _, g := range verified.Graphs {
		i := slices.IndexFunc(spec.Graphs, func(x graphir.Graph) bool { return x.Label == g.Label })
		if level != None && i >= 0 && g.Canary != "" && spec.HasCollectives(i) {
			labels = append(labels, g.Label)
		}
	}
	return labels
}

// onKnownData runs f, which fills memory and replays graphs. It puts back the memory that f writes, except the memory that zero clears.
func (c *Checker) onKnownData(f func() error) error {
	done := c.Time("canary data")
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
	err = f()
	defer c.Time("canary data")()
	// mutant: what a canary replay writes is put back
	return errors.Join(err, memory.PutBack(kept), c.zero(), cuda.Synchronize(), c.stream.Destroy())
}

// chooseHash has memory hashed on the device or, if that is impossible and the context is not lost, on the host.
func (c *Checker) chooseHash() error {
	defer c.Time("load hash")()
	err := c.hasher.useDevice(c.spans)
	// mutant: hashes of the host if the device refuses
	if cuda.Sticky(err) {
		return err
	}
	c.Hashing = Hashing{status.OnDevice, err}
	if err != nil {
		c.Hashing.Where = status.OnHost
	}
	return nil
}

// checkUnchanged hashes the memory that neither the engine nor a graph may change between the restore and serving: unnamed memory, which
// skipped or extra work would change, and restored contents.
func (c *Checker) checkUnchanged(want *artifacts.Verification) error {
	v := digest.Unchanged{Chunks: want.UnchangedChunks, Sum: want.Unchanged}
	if v.Sum == "" {
		return nil // the artifact has no such hash
	}
	defer c.Time("hash memory")()
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
		return &Error{"", got, v.Sum}
	}
	return nil
}

// replayAll replays each graph once, on the data of verification's first replay, and compares its results. After a difference it goes on with
// the graphs that have collective calls, because other ranks replay them now and wait for this one.
func (c *Checker) replayAll(verified *artifacts.Verification) (first error) {
	want := make(map[string]string)
	for _, g := range verified.Graphs {
		want[g.Label] = g.Canary
	}
	for i := range c.spec.Graphs {
		label := c.spec.Graphs[i].Label
		if want[label] == "" {
			continue // not deterministic natively, or the artifact has no hash
		}
		// mutant: replays after a difference
		if first != nil && !c.spec.HasCollectives(i) {
			continue
		}
		got, err := c.replayOnce(i)
		if err != nil {
			return errors.Join(first, fmt.Errorf("check graph %s: %w", label, err))
		}
		// mutant: canary replay before ready
		if got != want[label] && first == nil && !c.OtherWeights {
			first = &Error{label, got, want[label]}
		}
	}
	return first
}

func (c *Checker) replayOnce(graph int) (string, error) {
	done := c.Time("canary data")
	err := c.fill(0)
	done()
	if err != nil {
		return "", err
	}
	done = c.Time("canary replay")
	err = c.replay(graph)
	done()
	if err != nil {
		return "", err
	}
	defer c.Time("canary hash")()
	ranges, err := c.hashOf(graph, digest.Results...)
	return digest.SumRanges(ranges), err
}

// keep reads all memory that filling and replaying may write: all except the weights. Of a large KV cache it reads only the chunks that
// checks read, to which the fills of block tables point.
func (c *Checker) keep() ([]memory.Kept, error) {
	var kept []memory.Kept
	for _, s := range c.spans {
		if s.class == digest.Weight {
			continue
		}
		err := s.pieces(s.size+s.chunk, func(from, size uint64) error {
			p, err := memory.Keep(c.Memory.Base[s.alloc]+s.offset+from, size)
			kept = append(kept, p)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("keep what a check may write: %w", err)
		}
	}
	return kept, nil
}
