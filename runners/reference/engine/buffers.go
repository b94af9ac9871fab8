package engine

import (
	"errors"
	"fmt"
	"math"

	"medusa/internal/cuda"
	"medusa/runners/reference/marks"
)

// buffers are the decode step's inputs and outputs. Graphs are captured with their addresses, so they are allocated once,
// for the largest batch, before anything that depends on the batch size.
type buffers struct {
	tokens, positions, sequences, tables cuda.DevicePtr
	logits, next                         cuda.DevicePtr
	all                                  []cuda.DevicePtr

	maxBatch, maxBlocks int
	// host mirrors tokens, positions and tables, which change with every step, and receives next.
	host *cuda.HostBuffer
}

// allocateBuffers makes the static buffers and fills the inputs with padding.
func (e *Engine) allocateBuffers() error {
	n, blocks := e.options.maxBatch(), e.options.maxBlocks()
	b := &buffers{maxBatch: n, maxBlocks: blocks}
	e.buffers = b
	for _, t := range []struct {
		name  string
		at    *cuda.DevicePtr
		width int
		size  uint64
	}{
		{"input.tokens", &b.tokens, 1, 4},
		{"input.positions", &b.positions, 1, 4},
		{"input.sequences", &b.sequences, 1, 4},
		{"input.block_tables", &b.tables, blocks, 4},
		{"output.logits", &b.logits, e.config.VocabSize, e.elementSize()},
		{"output.next_tokens", &b.next, 1, 4},
	} {
		p, err := cuda.MemAlloc(uint64(n) * uint64(t.width) * t.size)
		if err != nil {
			return fmt.Errorf("allocate %s: %w", t.name, err)
		}
		*t.at = p
		b.all = append(b.all, p)
	}
	var err error
	if b.host, err = cuda.HostAlloc(4 * n * (2 + blocks)); err != nil {
		return fmt.Errorf("allocate host side of the inputs: %w", err)
	}
	sequences, padding := make([]int32, n), make([]int32, n)
	for i := range sequences {
		sequences[i], padding[i] = int32(i), -1
	}
	err = errors.Join(
		e.staging.put(b.tokens, int32s(make([]int32, n))),
		e.staging.put(b.positions, int32s(padding)),
		e.staging.put(b.sequences, int32s(sequences)),
		e.staging.put(b.tables, int32s(make([]int32, n*blocks))))
	if err != nil {
		return fmt.Errorf("fill inputs: %w", err)
	}
	return nil
}

// mark names the buffers to Medusa. It comes after the KV cache's size is known, which bounds the block tables.
func (e *Engine) markBuffers() {
	b, n, blocks := e.buffers, e.buffers.maxBatch, e.buffers.maxBlocks
	input := func(name string, at cuda.DevicePtr, hi int, lo int64, distinct bool, shape ...int) {
		size := uint64(4)
		for _, d := range shape {
			size *= uint64(d)
		}
		marks.Named(marks.Tensor{Name: name, Addr: at, Size: size, Role: marks.Input, DType: marks.I32, Shape: shape,
			Lo: lo, Hi: int64(min(hi, math.MaxInt32)), Distinct: distinct})
	}
	input("input.tokens", b.tokens, e.config.VocabSize, 0, false, n)
	input("input.positions", b.positions, e.options.MaxModelLen, 0, false, n)
	input("input.sequences", b.sequences, n, 0, true, n)
	// Two sequences that share a block write over each other in an order that no one defines.
	enough := e.kv.blocks-1 >= n*blocks
	// Of an elastic cache, only the least part is mapped at this time, and whenever graphs are verified.
	// mutant: blocks that verification may touch
	input("input.block_tables", b.tables, e.kv.blocks, nullBlock+1, enough, n, blocks)
	marks.Named(marks.Tensor{Name: "output.logits", Addr: b.logits, Size: uint64(n) * uint64(e.config.VocabSize) * e.elementSize(),
		Role: marks.Output, DType: elements[e.storage].mark, Shape: []int{n, e.config.VocabSize}})
	marks.Named(marks.Tensor{Name: "output.next_tokens", Addr: b.next, Size: uint64(4 * n), Role: marks.Output, DType: marks.I32, Shape: []int{n}})
}

// inputs are the first rows of the static inputs.
func (b *buffers) inputs(rows int) tokenInputs {
	return tokenInputs{rows: rows, tokens: b.tokens, positions: b.positions, sequences: b.sequences, tables: b.tables}
}

func (b *buffers) release() error {
	var err error
	for _, p := range b.all {
		err = errors.Join(err, p.Free())
	}
	if b.host != nil {
		err = errors.Join(err, b.host.Free())
	}
	return err
}
