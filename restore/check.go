package restore

import (
	"errors"
	"fmt"
	"os"
	"slices"

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
	spans  []span
	hasher *hasher
	fills  []*known        // by span; nil if no tensor data goes there
	saved  map[span][]byte // contents of Other memory at ready, and Permanent memory's saved contents
	served map[span][]byte // contents of Permanent memory after the self test; run N only
	stream cuda.Stream
}

// verify serves the self test, replays every graph twice, and writes the digest. It is called at ready.
func (s *Session) verify(selfTest func() ([]byte, error)) error {
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
	d := &digest.Digest{Device: device}
	if d.Ready, err = c.hashAll(digest.Other, digest.Weight); err != nil {
		return err
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
	if err := c.prepare(); err != nil {
		return err
	}
	for i := range c.spec.Graphs {
		g, err := c.replayTwice(i)
		if err != nil {
			return fmt.Errorf("replay graph %s: %w", c.spec.Graphs[i].Label, err)
		}
		d.Graphs = append(d.Graphs, g)
	}
	if s.restored != nil {
		d.Unchanged = digest.UnchangedOf(s.untouched, d.Graphs)
	}
	if d.End, err = c.hashAll(digest.Weight); err != nil {
		return err
	}
	return digest.Write(s.env.CheckOut, d)
}

// checker collects addresses and executables: those of the restored graphs, or those that this process captured itself.
func (s *Session) checker() (*checker, error) {
	if s.restored != nil {
		r := s.restored
		return newChecker(s.spec, r.memory, r.execs)
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
	return newChecker(s.spec, m, execs)
}

func newChecker(spec *graphir.Spec, m *memory, execs []cuda.GraphExec) (*checker, error) {
	spans := spansOf(spec)
	for _, s := range spans {
		if m.base[s.alloc] == 0 {
			return nil, fmt.Errorf("find allocation %d: it is not live, though it was when recorded", s.alloc)
		}
	}
	return &checker{spec: spec, memory: m, execs: execs, spans: spans, hasher: newHasher(m), fills: make([]*known, len(spans)), saved: make(map[span][]byte)}, nil
}

// hashAll hashes the spans of some classes.
func (c *checker) hashAll(classes ...digest.Class) ([]digest.Range, error) {
	var spans []span
	var fills []*known
	for i, s := range c.spans {
		if slices.Contains(classes, s.class) {
			spans, fills = append(spans, s), append(fills, c.fills[i])
		}
	}
	return c.hasher.hash(spans, fills)
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

// prepare makes the data that is equal for every replay: tensor data and resolved contents.
func (c *checker) prepare() (err error) {
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
			c.fills[i] = &known{data: handed[key], first: s.offset}
			continue
		}
		if s.tensor == noTensor || s.class == digest.Weight {
			continue
		}
		t := &c.spec.Tensors[s.tensor]
		data, err := tensorData(t, seedOf(purposeTensor, t.At.Alloc, t.At.Offset, 0))
		if err != nil {
			return err
		}
		c.fills[i] = &known{data: data, first: s.offset + s.shift}
	}
	for i := range c.spec.Contents {
		if err := c.saveContent(&c.spec.Contents[i]); err != nil {
			return err
		}
	}
	c.stream, err = cuda.StreamCreate(cuda.StreamNonBlocking)
	return err
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

// replayTwice replays one graph on equal inputs and different garbage.
func (c *checker) replayTwice(graph int) (digest.Graph, error) {
	g := &c.spec.Graphs[graph]
	out := digest.Graph{Label: g.Label, Batch: g.Batch}
	classes := []digest.Class{digest.KV, digest.Input, digest.Output, digest.Permanent, digest.Other, digest.Temporary, digest.Unstable}
	if total(c.spans, digest.Weight) <= weightsHashedAlways {
		classes = append(classes, digest.Weight)
	}
	for round := range 2 {
		if err := c.fill(round); err != nil {
			return out, fmt.Errorf("fill memory: %w", err)
		}
		if err := errors.Join(c.execs[graph].Launch(c.stream), c.stream.Synchronize()); err != nil {
			return out, err
		}
		ranges, err := c.hashAll(classes...)
		if err != nil {
			return out, err
		}
		if round == 0 {
			out.Ranges = ranges
			continue
		}
		for i := range out.Ranges {
			second(&out.Ranges[i], ranges[i])
		}
	}
	return out, c.findStale(graph, &out)
}

// fill puts all memory but the weights into the state that a replay starts from.
func (c *checker) fill(round int) error {
	for s, data := range c.saved {
		if err := write(c.memory.base[s.alloc]+s.offset, s.size, data); err != nil {
			return err
		}
	}
	for _, s := range c.spans {
		if s.class != digest.Temporary && s.class != digest.Unstable {
			continue
		}
		data := make([]byte, min(s.size, patternBytes))
		// mutant: other garbage before the second replay
		garbage(data, seedOf(purposeGarbage, s.alloc, s.offset, round))
		if err := write(c.memory.base[s.alloc]+s.offset, s.size, data); err != nil {
			return err
		}
	}
	for i, s := range c.spans {
		if c.fills[i] == nil {
			continue
		}
		if err := c.fills[i].fill(s, c.memory.base[s.alloc]+s.offset); err != nil {
			return fmt.Errorf("%s memory at %d of allocation %d: %w", s.class, s.offset, s.alloc, err)
		}
	}
	return cuda.Synchronize()
}
