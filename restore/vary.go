package restore

import (
	"fmt"
	"math"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// boundReplays is how many native replays measure by how much results vary.
const boundReplays = 8

// measureVariation replays a native graph whose floating-point results differ between two replays, on equal memory, to see by how
// much. With other garbage they may not differ by more: results that depend on memory that nobody writes have no bound.
func (c *checker) measureVariation(graph int, out *digest.Graph) error {
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
	measure := func(v *digest.Varying, data []byte) {
		for _, other := range v.Values {
			v.Bound = max(v.Bound, digest.Distance(v.DType, other, data))
		}
		v.Values = append(v.Values, data)
	}
	hold := func(v *digest.Varying, data []byte) {
		// mutant: results that vary with garbage
		if !v.Within(data) {
			v.Bound = math.Inf(1)
		}
	}
	for round, look := range []func(*digest.Varying, []byte){measure, hold} {
		for range boundReplays {
			if err := c.fill(round); err != nil {
				return fmt.Errorf("fill memory: %w", err)
			}
			if err := c.replay(graph); err != nil {
				return err
			}
			if err := c.eachVarying(out.Ranges, look); err != nil {
				return err
			}
		}
	}
	for i := range out.Ranges {
		r := &out.Ranges[i]
		r.Varying = slices.DeleteFunc(r.Varying, func(v digest.Varying) bool { return math.IsInf(v.Bound, 1) })
		for k := range r.Varying {
			r.Varying[k].Values = r.Varying[k].Values[:1]
		}
	}
	return nil
}

// keepVarying keeps the results of a restored replay whose native original's vary. ranges are those of the first replay.
func (c *checker) keepVarying(ranges []digest.Range, first bool) error {
	for i := range ranges {
		r := &ranges[i]
		for k := range r.Chunks() {
			if first && r.Written.Has(k) {
				c.vary(r, k)
			}
		}
	}
	return c.eachVarying(ranges, func(v *digest.Varying, data []byte) { v.Values = append(v.Values, data) })
}

// vary notes that a chunk varies, if it holds floating-point results.
func (c *checker) vary(r *digest.Range, chunk int) {
	if dtype := c.resultType(r); dtype.Float() {
		r.Varying = append(r.Varying, digest.Varying{Chunk: chunk, DType: dtype})
	}
}

// eachVarying reads the chunks that vary.
func (c *checker) eachVarying(ranges []digest.Range, look func(*digest.Varying, []byte)) error {
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
func (c *checker) chunkOf(r *digest.Range, chunk int) ([]byte, error) {
	offset, size := r.Span(chunk)
	data := make([]byte, size)
	if err := c.hasher.read(data, cuda.DevicePtr(c.memory.base[r.Alloc]+offset)); err != nil {
		return nil, fmt.Errorf("read allocation %d + %d: %w", r.Alloc, offset, err)
	}
	return data, nil
}

// resultType is the type of the numbers in an output or in the KV cache; 0 elsewhere.
func (c *checker) resultType(r *digest.Range) graphir.DType {
	if r.Class != digest.Output && r.Class != digest.KV {
		return 0
	}
	s := c.spanOf(r)
	if s.handed != 0 {
		return s.handed
	}
	return c.spec.Tensors[s.tensor].DType
}
