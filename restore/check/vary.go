package check

import (
	"fmt"
	"math"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// boundReplays is the number of native replays on equal memory that measure by how much results vary.
const boundReplays = 8

// measureVariation replays a native graph whose floating-point results differ between two replays, to see by how much: on equal
// memory, and on memory with other garbage.
func (c *Checker) measureVariation(graph int, out *digest.Graph) error {
	varies := false
	for i := range out.Ranges {
		r := &out.Ranges[i]
		for k := range r.Chunks() {
			if r.Written.Has(k) && !r.Stable(k) {
				c.vary(r, k)
			}
		}
		varies = varies || len(r.Varying) > 0
	}
	if !varies {
		return nil
	}
	for round := range 2 {
		for range boundReplays {
			if err := c.fill(round); err != nil {
				return fmt.Errorf("fill memory: %w", err)
			}
			if err := c.replay(graph); err != nil {
				return err
			}
			if err := c.eachVarying(out.Ranges, keepValue); err != nil {
				return err
			}
		}
	}
	for i := range out.Ranges {
		r := &out.Ranges[i]
		for k := range r.Varying {
			v := &r.Varying[k]
			v.Bound = digest.Bound(v.DType, v.Values[:boundReplays], v.Values[boundReplays:])
			v.Values = v.Values[:1]
		}
		r.Varying = slices.DeleteFunc(r.Varying, func(v digest.Varying) bool { return math.IsInf(v.Bound, 1) })
	}
	return nil
}

func keepValue(v *digest.Varying, data []byte) { v.Values = append(v.Values, data) }

// keepVarying keeps the results of a restored replay if the native graph's results vary. ranges are those of the first replay.
func (c *Checker) keepVarying(ranges []digest.Range, first bool) error {
	for i := range ranges {
		r := &ranges[i]
		for k := range r.Chunks() {
			if first && r.Written.Has(k) {
				c.vary(r, k)
			}
		}
	}
	return c.eachVarying(ranges, keepValue)
}

// vary notes that a chunk varies, if it holds floating-point results.
func (c *Checker) vary(r *digest.Range, chunk int) {
	if dtype := c.resultType(r); dtype.Float() {
		r.Varying = append(r.Varying, digest.Varying{Chunk: chunk, DType: dtype})
	}
}

// eachVarying reads the chunks that vary.
func (c *Checker) eachVarying(ranges []digest.Range, look func(*digest.Varying, []byte)) error {
	for i := range ranges {
		r := &ranges[i]
		for k := range r.Varying {
			v := &r.Varying[k]
			data, err := c.chunkOf(r, v.Chunk)
			if err != nil {
				return err
			}
			look(v, data)
		}
	}
	return nil
}

// chunkOf reads a chunk.
func (c *Checker) chunkOf(r *digest.Range, chunk int) ([]byte, error) {
	offset, size := r.Span(chunk)
	data := make([]byte, size)
	if err := c.hasher.read(data, cuda.DevicePtr(c.Memory.Base[r.Alloc]+offset)); err != nil {
		return nil, fmt.Errorf("read allocation %d + %d: %w", r.Alloc, offset, err)
	}
	return data, nil
}

// resultType is the type of the numbers in an output or in the KV cache; 0 elsewhere.
func (c *Checker) resultType(r *digest.Range) graphir.DType {
	if r.Class != digest.Output && r.Class != digest.KV {
		return 0
	}
	s := c.spanOf(r)
	if s.handed != 0 {
		return s.handed
	}
	return c.spec.Tensors[s.tensor].DType
}
