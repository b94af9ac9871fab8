package engine

import (
	"fmt"

	"medusa/internal/cuda"
)

// tokenInputs are the device addresses of the inputs of one forward, one entry a row. A row is one token.
type tokenInputs struct {
	rows      int
	tokens    cuda.DevicePtr // i32 [rows]
	positions cuda.DevicePtr // i32 [rows], negative: padding
	sequences cuda.DevicePtr // i32 [rows], row of tables
	tables    cuda.DevicePtr // i32 [sequences][maxBlocks]

	// Prefill only: the row of each sequence's last token, i32 [lasts]. 0 if every row is a sequence.
	last  cuda.DevicePtr
	lasts int
}

// outputs returns the number of rows whose logits are computed.
func (in tokenInputs) outputs() int {
	if in.last != 0 {
		return in.lasts
	}
	return in.rows
}

// activations are the intermediate values of one forward, one row a token.
type activations struct {
	residual, normed cuda.DevicePtr // [rows][hidden]
	qkv              cuda.DevicePtr // [rows][(q_heads + 2 kv_heads) * head_dim]
	heads            cuda.DevicePtr // [rows][q_heads * head_dim]
	projected        cuda.DevicePtr // [rows][hidden]
	gateUp           cuda.DevicePtr // [rows][2 * intermediate]
	product          cuda.DevicePtr // [rows][intermediate]
	gathered         cuda.DevicePtr // prefill: [sequences][hidden]
}

// allocator hands out device memory for the activations of one forward.
type allocator interface {
	allocate(size uint64) (cuda.DevicePtr, error)
}

// newActivations takes the memory of a forward over a number of rows, of which lasts are gathered (0: none).
func (e *Engine) newActivations(from allocator, rows, lasts int) (activations, error) {
	var a activations
	c := e.config
	for _, want := range []struct {
		to          *cuda.DevicePtr
		rows, width int
	}{
		{&a.residual, rows, c.HiddenSize},
		{&a.normed, rows, c.HiddenSize},
		{&a.qkv, rows, (c.QHeads + 2*c.KVHeads) * c.HeadDim},
		{&a.heads, rows, c.QHeads * c.HeadDim},
		{&a.projected, rows, c.HiddenSize},
		{&a.gateUp, rows, 2 * c.IntermediateSize},
		{&a.product, rows, c.IntermediateSize},
		{&a.gathered, lasts, c.HiddenSize},
	} {
		if want.rows == 0 {
			continue
		}
		var err error
		if *want.to, err = from.allocate(uint64(want.rows) * uint64(want.width) * e.elementSize()); err != nil {
			return a, fmt.Errorf("allocate activations of %d rows: %w", rows, err)
		}
	}
	return a, nil
}

// forward enqueues the first layers of the model over the rows of in, then the head, on the compute stream: logits
// [outputs][vocab] and next, i32 [outputs], the index of each row's largest logit. It only launches, so it can be
// captured.
func (e *Engine) forward(in tokenInputs, a activations, layers int, logits, next cuda.DevicePtr) error {
	p, c, w := e.program, e.config, e.weights
	steps := sequence{}
	steps.do(p.embed(in.tokens, w.embedding, a.residual, in.rows))
	steps.do(p.rmsNorm(a.residual, w.layers[0].inputNorm, a.normed, in.rows))
	for i := range layers {
		layer, k, v := w.layers[i], e.kv.keys(i), e.kv.values(i)
		after := w.finalNorm
		if i+1 < layers {
			after = w.layers[i+1].inputNorm
		}
		steps.do(e.blas.linear(a.qkv, a.normed, layer.qkv, in.rows, (c.QHeads+2*c.KVHeads)*c.HeadDim, c.HiddenSize))
		steps.do(p.rope(a.qkv, in.positions, e.ropeTable, in.rows))
		steps.do(p.storeKV(a.qkv, k, v, in))
		steps.do(p.attention(a.qkv, k, v, a.heads, in))
		steps.do(e.blas.linear(a.projected, a.heads, layer.output, in.rows, c.HiddenSize, c.QHeads*c.HeadDim))
		steps.do(p.addRMSNorm(a.residual, a.projected, layer.postNorm, a.normed, in.rows))
		steps.do(e.blas.linear(a.gateUp, a.normed, layer.gateUp, in.rows, 2*c.IntermediateSize, c.HiddenSize))
		steps.do(p.siluMul(a.gateUp, a.product, in.rows))
		steps.do(e.blas.linear(a.projected, a.product, layer.down, in.rows, c.HiddenSize, c.IntermediateSize))
		steps.do(p.addRMSNorm(a.residual, a.projected, after, a.normed, in.rows))
	}
	states := a.normed
	if in.last != 0 {
		steps.do(p.gatherRows(a.normed, in.last, a.gathered, in.lasts))
		states = a.gathered
	}
	steps.do(e.blas.linear(logits, states, w.head, in.outputs(), c.VocabSize, c.HiddenSize))
	steps.do(p.argmax(logits, next, in.outputs()))
	if steps.err != nil {
		return fmt.Errorf("forward of %d rows: %w", in.rows, steps.err)
	}
	return nil
}

// sequence keeps the first error of a list of launches. Launching on after an error is harmless: the results are
// thrown away.
type sequence struct{ err error }

func (s *sequence) do(err error) {
	if s.err == nil {
		s.err = err
	}
}
