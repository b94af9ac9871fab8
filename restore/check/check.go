// Package check replays graphs on prepared memory and hashes the memory afterwards.
//
// In: the memory and the executable graphs of a process, restored or captured by the engine itself. Out: a digest.Digest, which
// verification compares with that of another process; or, before a restored engine is ready, an *Error if a result differs from the one
// that verification recorded. All memory except weights is filled with data that depends on seeds alone.
package check

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/memory"
)

// weightsHashedAlways bounds the weights that are hashed after every replay. Larger weights are hashed at ready and at the end only. That
// shows that a graph wrote to them, but not which one.
const weightsHashedAlways = 64 << 20

// Process is the engine's process as a check sees it.
type Process struct {
	Memory   *memory.Map
	Execs    []cuda.GraphExec // by graph
	Native   bool             // the engine captured these graphs itself
	Earlier  *Earlier         // memory that a native process had before; nil: it was not hashed
	Steps    Steps
	Varying  map[string]bool                 // graphs whose results vary natively, by label
	Gone     func(object uint32) bool        // memory that the engine has given back since; nil: there is none
	OfPeers  func(addr, size uint64) bool    // memory that holds other data if all ranks run; nil: they do
	Patience time.Duration                   // for one replay
	Overdue  func(error)                     // ends the process because a replay does not end; called by another goroutine
	Time     func(step string) (stop func()) // measures Medusa's own steps
}

// Checker replays graphs on prepared memory and hashes the memory after them. It treats a native and a restored process
// alike: only the sources of addresses and executables differ.
type Checker struct {
	Process
	Hashing      Hashing
	OtherWeights bool // than verification's

	spec   *graphir.Spec
	spans  []span
	hasher *hasher
	fills  [fillings][]*known // by span; nil if no tensor data goes there
	zeroed []bool             // by span: between the chunks that are looked at
	saved  map[span][]byte    // contents of Other memory at ready, and Permanent memory's saved contents
	served map[span][]byte    // contents of Permanent memory after the self test; of a native process only
	stream cuda.Stream
	reach  []reach // by graph

	garbage [rounds]pattern
	stored  cuda.DevicePtr // fills; 0: they are on the host
	filling int            // the last one

	keepsCache bool // the chunks of the cache that no check reads hold data, and are not cleared
}

// New prepares to check a process.
func New(p Process) (*Checker, error) {
	spec := p.Memory.Spec
	spans := spansOf(spec)
	if p.Gone != nil {
		spans = slices.DeleteFunc(spans, func(s span) bool { return p.Gone(s.alloc) })
	}
	for _, s := range spans {
		if p.Memory.Base[s.alloc] == 0 {
			return nil, fmt.Errorf("find allocation %d: it is not live, though it was when recorded", s.alloc)
		}
	}
	c := &Checker{Process: p, spec: spec, spans: spans, hasher: newHasher(p.Memory), saved: make(map[span][]byte), zeroed: make([]bool, len(spans))}
	for filling := range c.fills {
		c.fills[filling] = make([]*known, len(spans))
	}
	var err error
	c.reach, err = reachOf(spec)
	return c, err
}

// Untouched hashes memory that may stay unchanged, before any replay of a verification.
func (c *Checker) Untouched() ([]digest.Range, error) { return c.hashAll(digest.StaysUnchanged...) }

// Weights hashes the weights, before any replay of a verification.
func (c *Checker) Weights() (sum string, err error) {
	if err := c.chooseFaster(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.hasher.close()) }()
	return c.sumWeights()
}

func (c *Checker) sumWeights() (string, error) {
	ranges, err := c.hashAll(digest.Weight)
	return digest.SumRanges(ranges), err
}

// Verify serves the self test, replays every graph twice, and returns the digest. It is called at ready. untouched is the answer of
// Untouched, for a restored process.
func (c *Checker) Verify(selfTest func() error, untouched []digest.Range) (d *digest.Digest, err error) {
	if err := cuda.Synchronize(); err != nil {
		return nil, err
	}
	if err := c.chooseFaster(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.unstore(), c.hasher.close()) }()
	d = &digest.Digest{}
	if d.Ready, err = c.hashAll(digest.Other, digest.Weight); err != nil {
		return nil, err
	}
	if c.Earlier != nil {
		if d.Skipped, err = c.Earlier.changed(); err != nil {
			return nil, err
		}
	}
	if err := c.takeSnapshot(); err != nil {
		return nil, err
	}
	if err := selfTest(); err != nil {
		return nil, err
	}
	if d.Free, _, err = cuda.MemInfo(); err != nil {
		return nil, err
	}
	if c.Native {
		if c.served, err = c.read(digest.Permanent); err != nil {
			return nil, err
		}
	}
	if err := c.prepare(c.Native); err != nil {
		return nil, err
	}
	if err := c.store(); err != nil {
		return nil, err
	}
	for i := range c.spec.Graphs {
		g, err := c.replayTwice(i)
		if err != nil {
			return nil, fmt.Errorf("replay graph %s: %w", c.spec.Graphs[i].Label, err)
		}
		d.Graphs = append(d.Graphs, g)
	}
	if !c.Native {
		d.Unchanged = digest.UnchangedOf(untouched, d.Graphs, c.ofPeers)
	}
	// fill does not fill memory again that a graph wrote outside of its reach, so the hashes below show such writes.
	if err := c.fill(0); err != nil {
		return nil, err
	}
	if d.End, err = c.hashAll(digest.Weight, digest.Other, digest.Permanent, digest.KV, digest.Input, digest.Output); err != nil {
		return nil, err
	}
	if c.Native {
		err = c.lookCloser(d)
	}
	return d, err
}

// ofPeers is OfPeers for bytes of an allocation. Memory of the capture phase was made later than the calls.
func (c *Checker) ofPeers(alloc uint32, offset, size uint64) bool {
	engines := int(alloc) < len(c.spec.Allocations) && c.spec.Allocations[alloc].Owner == graphir.OwnerEngine
	return c.OfPeers != nil && engines && c.OfPeers(c.Memory.Base[alloc]+offset, size)
}

// lookCloser makes the replays that only natively captured graphs need.
func (c *Checker) lookCloser(d *digest.Digest) error {
	for i := range d.Graphs {
		err := c.stepEagerly(i, &d.Graphs[i])
		if err == nil && !c.spec.HasCollectives(i) { // which replays it needs depends on this rank's memory
			err = c.findStale(i, &d.Graphs[i])
		}
		if err != nil {
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

// hashAll hashes the spans of some classes, and notes the chunks that differ from the last fill.
func (c *Checker) hashAll(classes ...digest.Class) ([]digest.Range, error) {
	return c.hashSome(func(s *span) bool { return slices.Contains(classes, s.class) })
}

// hashOf is hashAll of the memory that a graph can reach.
func (c *Checker) hashOf(graph int, classes ...digest.Class) ([]digest.Range, error) {
	return c.hashSome(func(s *span) bool { return slices.Contains(classes, s.class) && c.reach[graph].has(s.alloc) })
}

func (c *Checker) hashSome(wanted func(*span) bool) ([]digest.Range, error) {
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

// takeSnapshot keeps the contents of Other memory, so that every replay starts from the same contents.
func (c *Checker) takeSnapshot() (err error) {
	c.saved, err = c.read(digest.Other)
	return err
}

// read returns the contents of the spans of a class.
func (c *Checker) read(class digest.Class) (map[span][]byte, error) {
	held := make(map[span][]byte)
	for _, s := range c.spans {
		if s.class != class {
			continue
		}
		data := make([]byte, s.size)
		if err := cuda.CopyToHost(data, cuda.DevicePtr(c.Memory.Base[s.alloc]+s.offset)); err != nil {
			return nil, fmt.Errorf("read allocation %d: %w", s.alloc, err)
		}
		held[s] = data
	}
	return held, nil
}

// saveContent keeps the content's bytes, pointers resolved, for those of its spans that no tensor covers.
func (c *Checker) saveContent(content *graphir.Content) error {
	if content.Space == graphir.SpaceHost {
		return nil // the native process reads host memory of its own
	}
	data, err := c.Memory.Content(content)
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
