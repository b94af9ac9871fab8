package restore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// weightsHashedAlways bounds the weights that are hashed after every replay. Bigger ones are hashed at ready and at the
// end, which still tells that a graph wrote to them, though not which.
const weightsHashedAlways = 64 << 20

// checker replays graphs on prepared memory and hashes the memory after them. It treats a native (N) and a restored process
// (V) alike: only the sources of addresses and executables differ.
type checker struct {
	spec   *graphir.Spec
	memory *memory
	execs  []cuda.GraphExec
	steps  Steps
	spans  []span
	hasher *hasher
	fills  [fillings][]*known // by span; nil if no tensor data goes there
	saved  map[span][]byte    // contents of Other memory at ready, and Permanent memory's saved contents
	served map[span][]byte    // contents of Permanent memory after the self test; run N only
	stream cuda.Stream
	reach  []reach // by graph

	varying map[string]bool // graphs whose results vary natively, by label

	garbage [rounds][]byte
	filling int // the last one

	patience time.Duration // for one replay
	overdue  func(error)   // does not return
}

// verify serves the self test, replays every graph twice, and writes the digest. It is called at ready.
func (s *Session) verify(selfTest func() ([]byte, error)) (err error) {
	c, err := s.checker()
	if err != nil {
		return err
	}
	device, err := deviceName()
	if err != nil {
		return err
	}
	if err := cuda.Synchronize(); err != nil {
		return err
	}
	if err := s.chooseFaster(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.hasher.close()) }()
	d := &digest.Digest{Device: device}
	if d.Ready, err = c.hashAll(digest.Other, digest.Weight); err != nil {
		return err
	}
	if s.earlier != nil {
		if d.Skipped, err = s.earlier.changed(); err != nil {
			return err
		}
	}
	if err := c.takeSnapshot(); err != nil {
		return err
	}
	if err := s.serveSelfTest(selfTest); err != nil {
		return err
	}
	if d.Free, _, err = cuda.MemInfo(); err != nil {
		return err
	}
	if s.restored == nil {
		if c.served, err = c.read(digest.Permanent); err != nil {
			return err
		}
	}
	native := s.restored == nil
	if err := c.prepare(native); err != nil {
		return err
	}
	for i := range c.spec.Graphs {
		g, err := c.replayTwice(i, native)
		if err != nil {
			return fmt.Errorf("replay graph %s: %w", c.spec.Graphs[i].Label, err)
		}
		d.Graphs = append(d.Graphs, g)
	}
	if s.restored != nil {
		d.Unchanged = digest.UnchangedOf(s.untouched, d.Graphs)
	}
	// What a graph wrote beyond what it refers to is not filled again, and stays.
	if err := c.fill(0); err != nil {
		return err
	}
	if d.End, err = c.hashAll(digest.Weight, digest.Other, digest.Permanent, digest.KV, digest.Input, digest.Output); err != nil {
		return err
	}
	if native {
		err = c.lookCloser(d)
	}
	if err != nil {
		return err
	}
	return digest.Write(s.env.CheckOut, d)
}

// lookCloser makes the replays that only natively captured graphs need.
func (c *checker) lookCloser(d *digest.Digest) error {
	for i := range d.Graphs {
		if err := errors.Join(c.stepEagerly(i, &d.Graphs[i]), c.findStale(i, &d.Graphs[i])); err != nil {
			return fmt.Errorf("replay graph %s: %w", d.Graphs[i].Label, err)
		}
	}
	copied, err := c.refers(d)
	if err == nil {
		err = c.replayOtherwise(d)
	}
	if err == nil {
		d.Computes = computes(d, copied)
	}
	return err
}

// checker collects addresses and executables: those of the restored graphs, or those that this process captured itself.
func (s *Session) checker() (*checker, error) {
	if s.restored != nil {
		r := s.restored
		return s.newChecker(r.memory, r.execs)
	}
	if s.spec == nil {
		return nil, s.fallback
	}
	allocs, err := allocations()
	if err != nil {
		return nil, err
	}
	steps, err := sequence()
	if err != nil {
		return nil, err
	}
	if allocs, err = s.align(steps, allocs, true); err != nil {
		return nil, err
	}
	captured, err := capturedGraphs()
	if err != nil {
		return nil, err
	}
	// Graphs that the engine captured before the phases that a restored start skips are its own.
	captured = captured[max(0, len(captured)-len(s.spec.Graphs)):]
	if len(captured) != len(s.spec.Graphs) {
		return nil, fmt.Errorf("match captured graphs: %d were captured, the artifact has %d", len(captured), len(s.spec.Graphs))
	}
	execs := make([]cuda.GraphExec, len(captured))
	for i, g := range captured {
		if g.label != s.spec.Graphs[i].Label || g.exec == 0 {
			return nil, fmt.Errorf("match captured graph %d: %q (executable %#x), the artifact has %q", i, g.label, uint64(g.exec), s.spec.Graphs[i].Label)
		}
		execs[i] = g.exec
	}
	m := engineMemory(s.spec, allocs)
	if err := errors.Join(m.checkChains(), s.placeTensors(m)); err != nil {
		return nil, err
	}
	r, err := newResolver(s.spec)
	if err == nil {
		err = r.globals(m)
	}
	if err != nil {
		return nil, err
	}
	return s.newChecker(m, execs)
}

// newChecker makes one whose replays end, and before which the engine is asked.
func (s *Session) newChecker(m *memory, execs []cuda.GraphExec) (*checker, error) {
	c, err := newChecker(s.spec, m, execs)
	if err != nil {
		return nil, err
	}
	c.steps, c.patience, c.overdue = s.steps, replayPatience, s.leave
	c.varying = make(map[string]bool)
	if s.artifact != nil {
		for _, g := range s.artifact.Verification.Graphs {
			c.varying[g.Label] = !g.NativeDeterministic
		}
	}
	if n := s.env.ReplaySeconds; n != 0 {
		c.patience = time.Duration(n) * time.Second
	}
	return c, nil
}

func newChecker(spec *graphir.Spec, m *memory, execs []cuda.GraphExec) (*checker, error) {
	spans := spansOf(spec)
	for _, s := range spans {
		if m.base[s.alloc] == 0 {
			return nil, fmt.Errorf("find allocation %d: it is not live, though it was when recorded", s.alloc)
		}
	}
	c := &checker{spec: spec, memory: m, execs: execs, spans: spans, hasher: newHasher(m), saved: make(map[span][]byte)}
	for filling := range c.fills {
		c.fills[filling] = make([]*known, len(spans))
	}
	var err error
	c.reach, err = reachOf(spec)
	return c, err
}

// hashAll hashes the spans of some classes, and notes which chunks are not as the last fill left them.
func (c *checker) hashAll(classes ...digest.Class) ([]digest.Range, error) {
	return c.hashSome(func(s *span) bool { return slices.Contains(classes, s.class) })
}

// hashOf is hashAll of the memory that a graph can reach.
func (c *checker) hashOf(graph int, classes ...digest.Class) ([]digest.Range, error) {
	return c.hashSome(func(s *span) bool { return slices.Contains(classes, s.class) && c.reach[graph].has(s.alloc) })
}

func (c *checker) hashSome(wanted func(*span) bool) ([]digest.Range, error) {
	var spans []span
	var fills []*known
	for i, s := range c.spans {
		if wanted(&s) {
			spans, fills = append(spans, s), append(fills, c.fills[c.filling][i])
		}
	}
	ranges, err := c.hasher.hash(spans, fills)
	if err != nil {
		return nil, err
	}
	for i, k := range fills {
		ranges[i].Written = k.written(&spans[i])
		if k != nil {
			k.unsure = false
		}
	}
	return ranges, nil
}

// takeSnapshot keeps the contents of Other memory, so that every replay starts from them, whatever ran before.
func (c *checker) takeSnapshot() (err error) {
	c.saved, err = c.read(digest.Other)
	return err
}

// read returns the contents of the spans of a class.
func (c *checker) read(class digest.Class) (map[span][]byte, error) {
	held := make(map[span][]byte)
	for _, s := range c.spans {
		if s.class != class {
			continue
		}
		data := make([]byte, s.size)
		if err := cuda.CopyToHost(data, cuda.DevicePtr(c.memory.base[s.alloc]+s.offset)); err != nil {
			return nil, fmt.Errorf("read allocation %d: %w", s.alloc, err)
		}
		held[s] = data
	}
	return held, nil
}

func (s *Session) serveSelfTest(selfTest func() ([]byte, error)) error {
	if s.env.SelfTestOut == "" || selfTest == nil {
		return nil
	}
	out, err := selfTest()
	if err != nil {
		return fmt.Errorf("serve self test: %w", err)
	}
	return os.WriteFile(s.env.SelfTestOut, out, 0o644)
}

// saveContent keeps the content's bytes, pointers resolved, for those of its spans that no tensor covers.
func (c *checker) saveContent(content *graphir.Content) error {
	if content.Space == graphir.SpaceHost {
		return nil // the native process reads host memory of its own
	}
	data, err := c.memory.resolveContent(content)
	if err != nil {
		return err
	}
	object := c.spec.Object(content.Space, content.Alloc)
	for _, s := range c.spans {
		from, to := max(s.offset, content.Offset), min(s.offset+s.size, content.Offset+uint64(len(data)))
		if s.class != digest.Permanent || s.alloc != object || from >= to {
			continue
		}
		if c.saved[s] == nil {
			c.saved[s] = make([]byte, s.size)
		}
		copy(c.saved[s][from-s.offset:], data[from-content.Offset:to-content.Offset])
	}
	return nil
}
