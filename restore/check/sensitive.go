package check

import (
	"bytes"
	"fmt"

	"medusa/graphir"
	"medusa/restore/digest"
)

// If a replay's results would be the same with other inputs, or with another KV cache, they prove no kernel between data
// and results. So check-native replays each graph with such data, too, and notes which outputs change. Each pass over the
// graphs fills memory anew only once.

// replayOtherwise makes these replays of all graphs.
func (c *Checker) replayOtherwise(d *digest.Digest) error {
	for filling := range fillings {
		for i := range d.Graphs {
			g := &d.Graphs[i]
			if filling == otherInputs && !g.ReadsInputs || filling == otherKV && !g.ReadsKV || filling < rounds {
				continue
			}
			err := c.fill(filling)
			if err == nil {
				err = c.replay(i)
			}
			if err == nil {
				err = c.compareOutputs(i, g)
			}
			if err != nil {
				return fmt.Errorf("replay graph %s on other data: %w", g.Label, err)
			}
		}
	}
	return nil
}

// compareOutputs notes the chunks of outputs in which the last replay differs from the first. With other inputs it also notes
// such chunks of the KV cache, because an engine may put its results there. Inputs are left out: a graph's results there cannot
// be told from the engine's data.
func (c *Checker) compareOutputs(graph int, g *digest.Graph) error {
	now, err := c.hashOf(graph, digest.KV, digest.Input, digest.Output, digest.Permanent, digest.Other) // notes the chunks to fill anew
	if err != nil {
		return err
	}
	for _, r := range now {
		// mutant: KV cache as a result
		if r.Class != digest.Output && !(r.Class == digest.KV && c.filling == otherInputs) {
			continue
		}
		first := find(g.Ranges, &r)
		for k := range r.Chunks() {
			if bytes.Equal(r.Hash(0, k), first.Hash(0, k)) {
				continue
			}
			if v := first.VaryingAt(k); v != nil {
				data, err := c.chunkOf(&r, k)
				if err != nil {
					return err
				}
				if v.Within(data) {
					continue
				}
			}
			if c.filling == otherInputs {
				first.OtherInputs.Add(k)
			} else {
				first.OtherKV.Add(k)
			}
		}
	}
	return nil
}

// find returns the range of the same memory.
func find(ranges []digest.Range, r *digest.Range) *digest.Range {
	for i := range ranges {
		if x := &ranges[i]; x.Alloc == r.Alloc && x.Offset == r.Offset && x.Class == r.Class {
			return x
		}
	}
	panic(fmt.Sprintf("find the hashes of allocation %d + %d", r.Alloc, r.Offset))
}

// extent is memory by object.
type extent struct {
	object   uint32
	from, to uint64
}

func (e extent) meets(object uint32, from, size uint64) bool {
	return e.object == object && e.from < from+size && from < e.to
}

// varies reports whether verification can fill an input with different values. Flags that are always zero change no result.
func varies(t *graphir.Tensor) bool {
	// mutant: inputs of one value
	return t.DType.Float() || t.Hi-t.Lo > 1
}

// refers notes which graphs refer to inputs and to the KV cache, and returns the memory that copies and fills of each graph write.
func (c *Checker) refers(d *digest.Digest) (copied [][]extent, err error) {
	err = c.spec.EachGraph(func(i int, g *graphir.Graph) error {
		out := &d.Graphs[i]
		var written []extent
		var visit func(g *graphir.Graph)
		visit = func(g *graphir.Graph) {
			for k := range g.Nodes {
				n := &g.Nodes[k]
				n.Pointers(func(p graphir.Pointer) {
					for s := range c.spans {
						if s := &c.spans[s]; (extent{c.spec.Target(p), p.Offset, p.Offset + 1}).meets(s.alloc, s.offset, s.size) {
							out.ReadsInputs = out.ReadsInputs || s.class == digest.Input && varies(&c.spec.Tensors[s.tensor])
							out.ReadsKV = out.ReadsKV || s.class == digest.KV
						}
					}
				})
				n.Writes(func(to graphir.Pointer, size uint64) {
					written = append(written, extent{c.spec.Target(to), to.Offset, to.Offset + size})
				})
				if n.Type == graphir.NodeChild {
					visit(&c.spec.Children[n.Target])
				}
			}
		}
		visit(g)
		copied = append(copied, written)
		return nil
	})
	return copied, err
}

// computes reports whether any kernel wrote a result. That is memory of an output or of the KV cache that changes with other data and
// that no copy and no fill of its graph writes. Inputs do not count, because the engine writes them before a replay. Memory that does
// not change with other data may be state of a library.
func computes(d *digest.Digest, copied [][]extent) bool {
	for i := range d.Graphs {
		for k := range d.Graphs[i].Ranges {
			r := &d.Graphs[i].Ranges[k]
			if r.Class != digest.KV && r.Class != digest.Output {
				continue
			}
			for chunk := range r.Chunks() {
				offset, size := r.Span(chunk)
				// mutant: state that is no result
				result := (r.OtherInputs.Has(chunk) || r.OtherKV.Has(chunk)) && (r.Stable(chunk) || r.VaryingAt(chunk) != nil)
				if result && r.Written.Has(chunk) && !meetAny(copied[i], r.Alloc, offset, size) {
					return true
				}
			}
		}
	}
	return false
}

func meetAny(all []extent, object uint32, from, size uint64) bool {
	for _, e := range all {
		if e.meets(object, from, size) {
			return true
		}
	}
	return false
}
