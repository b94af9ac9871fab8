package kernels_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/runners/reference/kernels"
)

// A cache is a paged KV cache with two sequences whose blocks are scattered and interleaved.
type cache struct {
	*device
	qHeads, kvHeads, headDim int

	k, v, tables cuda.DevicePtr
}

const blockSize, maxBlocks, blocks, context = 8, 6, 12, blockSize * maxBlocks

var tables = []int32{7, 2, 11, 4, 0, 9, 3, 10, 1, 8, 5, 6}

func newCache(d *device, qHeads, kvHeads, headDim int) *cache {
	size := blocks * kvHeads * blockSize * headDim
	return &cache{d, qHeads, kvHeads, headDim, d.blank(size), d.blank(size), d.ints(tables...)}
}

func (c *cache) width() int { return (c.qHeads + 2*c.kvHeads) * c.headDim }

func (c *cache) store(qkv []float64, sequences, positions []int32) {
	c.launch(kernels.StoreKV, cuda.Dim3{uint32(len(positions)), 1, 1}, kernels.RowThreads(c.kvHeads*c.headDim), cuda.NewArgs().
		Ptr(c.elements(qkv)).Ptr(c.k).Ptr(c.v).Ptr(c.tables).Ptr(c.ints(sequences...)).Ptr(c.ints(positions...)).
		I32(c.qHeads).I32(c.kvHeads).I32(c.headDim).I32(blockSize).I32(maxBlocks))
}

func (c *cache) attend(qkv []float64, sequences, positions []int32) []float64 {
	n := len(positions) * c.qHeads * c.headDim
	out := c.elements(noise(n, 99)) // every element is written, padding's too
	a := kernels.AttentionArgs{
		QKV: uint64(c.elements(qkv)), KCache: uint64(c.k), VCache: uint64(c.v), Out: uint64(out),
		BlockTables: uint64(c.tables), Sequences: uint64(c.ints(sequences...)), Positions: uint64(c.ints(positions...)),
		QHeads: int32(c.qHeads), KVHeads: int32(c.kvHeads), HeadDim: int32(c.headDim), BlockSize: blockSize,
		MaxBlocks: maxBlocks, Scale: float32(1 / math.Sqrt(float64(c.headDim))),
	}
	words := (*[kernels.AttentionArgsSize / 8]uint64)(unsafe.Pointer(&a))
	c.launch(kernels.Attention, cuda.Dim3{uint32(len(positions)), uint32(c.qHeads), 1}, kernels.AttentionThreads,
		cuda.NewArgs().Struct(words[:]...))
	return c.read(out, n)
}

// attention is the definition: row i attends to those rows of its sequence whose position is not above its own.
func (c *cache) attention(all []float64, sequences, positions []int32, i int) []float64 {
	row := func(r, head int) []float64 { return all[r*c.width()+head*c.headDim:][:c.headDim] }
	var out []float64
	for h := range c.qHeads {
		shared := c.qHeads + h/(c.qHeads/c.kvHeads)
		total, sum := 0.0, make([]float64, c.headDim)
		for r := range positions {
			if sequences[r] != sequences[i] || positions[r] > positions[i] || positions[r] < 0 {
				continue
			}
			score := 0.0
			for d, q := range row(i, h) {
				score += q * row(r, shared)[d]
			}
			p := math.Exp(score / math.Sqrt(float64(c.headDim)))
			total += p
			for d, v := range row(r, shared+c.kvHeads) {
				sum[d] += p * v
			}
		}
		for _, v := range sum {
			out = append(out, v/total)
		}
	}
	return out
}

func TestAttention(t *testing.T) {
	shapes := []struct{ qHeads, kvHeads, headDim int }{
		{4, 2, 16}, {1, 1, 4}, {6, 6, 48}, {3, 1, 64}, {2, 1, 128},
		{2, 2, 100}, {2, 1, 256}, {1, 1, 136}, // not a power of two; wider than a warp's vectors
		{3, 1, 2}, {4, 2, 22}, {2, 1, 50}, {1, 1, 130}, // not made of vectors
	}
	onDevice(t, func(t *testing.T, d *device) {
		for _, s := range shapes {
			d.sub(fmt.Sprintf("%d heads of %d", s.qHeads, s.headDim), func(t *testing.T, d *device) {
				checkAttention(t, d, s.qHeads, s.kvHeads, s.headDim)
			})
		}
	})
}

func checkAttention(t *testing.T, d *device, qHeads, kvHeads, headDim int) {
	c := newCache(d, qHeads, kvHeads, headDim)
	// Two prompts of 45 and 3 tokens, prefilled together in a mixed order, with padding between them.
	var sequences, positions []int32
	for p := range int32(45) {
		sequences, positions = append(sequences, 0), append(positions, p)
		if p%16 == 0 {
			sequences, positions = append(sequences, 1, 1), append(positions, p/16, -1)
		}
	}
	qkv := noise(len(positions)*c.width(), 6)
	for i := range qkv {
		qkv[i] *= 2
	}
	c.store(qkv, sequences, positions)
	got := c.attend(qkv, sequences, positions)
	width := qHeads * headDim
	for i, p := range positions {
		want := make([]float64, width)
		if p >= 0 {
			want = c.attention(qkv, sequences, positions, i)
		}
		c.close(fmt.Sprintf("row %d at position %d", i, p), got[i*width:(i+1)*width], want)
	}
	// A row alone gives the bits that it gives among others.
	last := len(positions) - 1
	alone := c.attend(qkv[last*c.width():], sequences[last:], positions[last:])
	c.same("a row alone", alone, got[last*width:])
	// Only the slots of stored tokens were written.
	written := 0
	for _, v := range c.read(c.k, blocks*kvHeads*blockSize*headDim) {
		if v != 0 {
			written++
		}
	}
	want := 0
	for i, p := range positions {
		for _, v := range qkv[i*c.width()+qHeads*headDim:][:kvHeads*headDim] {
			if p >= 0 && v != 0 {
				want++
			}
		}
	}
	if written != want {
		t.Errorf("%d key elements are in the cache, want %d", written, want)
	}
}

func TestRope(t *testing.T) {
	onDevice(t, func(t *testing.T, d *device) {
		for _, headDim := range []int{16, 2, 50} {
			checkRope(d, headDim)
		}
	})
}

func checkRope(d *device, headDim int) {
	const qHeads, kvHeads, theta = 4, 2, 10000.0
	width := (qHeads + 2*kvHeads) * headDim
	var table []float32
	for p := range context {
		for _, f := range []func(float64) float64{math.Cos, math.Sin} {
			for i := range headDim / 2 {
				table = append(table, float32(f(float64(p)*math.Pow(theta, -2*float64(i)/float64(headDim)))))
			}
		}
	}
	positions := []int32{0, 5, -1, 47}
	qkv := noise(len(positions)*width, 7)
	want := slices.Clone(qkv)
	for r, p := range positions {
		for h := range qHeads + kvHeads {
			for i := range headDim / 2 {
				if p < 0 {
					continue
				}
				at := r*width + h*headDim + i
				sin, cos := math.Sincos(float64(p) * math.Pow(theta, -2*float64(i)/float64(headDim)))
				want[at] = qkv[at]*cos - qkv[at+headDim/2]*sin
				want[at+headDim/2] = qkv[at+headDim/2]*cos + qkv[at]*sin
			}
		}
	}
	in := d.elements(qkv)
	d.launch(kernels.Rope, cuda.Dim3{uint32(len(positions)), 1, 1}, kernels.RowThreads(qHeads*headDim), cuda.NewArgs().
		Ptr(in).Ptr(d.ints(positions...)).Ptr(d.float32s(table)).I32(qHeads).I32(kvHeads).I32(headDim))
	got := d.read(in, len(qkv))
	d.close("rope", got, want)
	for r := range positions {
		values := r*width + (qHeads+kvHeads)*headDim
		d.same("values", got[values:(r+1)*width], want[values:(r+1)*width])
	}
}
