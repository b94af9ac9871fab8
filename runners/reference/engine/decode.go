package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
)

// Decode generates one token for each of a number of prefilled sequences, at most MaxBatch, and appends it. The graph of
// the smallest captured batch size that holds them runs; the rows left over are padding.
func (e *Engine) Decode(sequences []*Sequence) (Step, error) {
	if len(sequences) == 0 || len(sequences) > e.MaxBatch() {
		return Step{}, fmt.Errorf("decode: %d sequences, between 1 and %d are possible", len(sequences), e.MaxBatch())
	}
	for _, s := range sequences {
		if e.Full(s) || s.cached != len(s.tokens)-1 {
			return Step{}, fmt.Errorf("decode: a sequence of %d tokens, %d of them computed, cannot go on", len(s.tokens), s.cached)
		}
		if err := e.reserve(s, len(s.tokens)-1); err != nil {
			return Step{}, err
		}
	}
	i := slices.IndexFunc(e.options.BatchSizes, func(size int) bool { return size >= len(sequences) })
	batch := e.options.BatchSizes[i]
	marks.CallLog(fmt.Sprintf("decode-step begin batch=%d", batch))
	step, err := e.runStep(sequences, batch)
	marks.CallLog("decode-step end")
	if err != nil {
		return Step{}, e.session.Failed(fmt.Errorf("decode step of batch size %d: %w", batch, err))
	}
	step.accept(sequences)
	return step, nil
}

func (e *Engine) runStep(sequences []*Sequence, batch int) (Step, error) {
	if err := e.buffers.fill(sequences, batch, e.device.compute); err != nil {
		return Step{}, err
	}
	g := e.graphs[batch]
	if g != nil {
		err := g.Launch(e.device.compute)
		var invalid *restore.InvalidError
		switch {
		case errors.As(err, &invalid):
			delete(e.graphs, batch)
			g = nil
		case err != nil:
			return Step{}, err
		}
	}
	if g == nil {
		if err := e.eagerStep(batch, e.config.Layers); err != nil {
			return Step{}, err
		}
	}
	return e.results(e.buffers.next, e.buffers.logits, len(sequences))
}

// fill writes the inputs of a step: a row for each sequence, padding behind them. The previous step is done, so that
// the host side is free to be written.
func (b *buffers) fill(sequences []*Sequence, batch int, stream cuda.Stream) error {
	tokens, positions := b.host.Bytes[:4*b.maxBatch], b.host.Bytes[4*b.maxBatch:8*b.maxBatch]
	tables := b.host.Bytes[8*b.maxBatch:]
	put := func(list []byte, i int, v int32) { binary.LittleEndian.PutUint32(list[4*i:], uint32(v)) }
	for i := range batch {
		put(tokens, i, 0)
		put(positions, i, -1)
		for j := range b.maxBlocks {
			put(tables, i*b.maxBlocks+j, nullBlock)
		}
		if i >= len(sequences) {
			continue
		}
		s := sequences[i]
		put(tokens, i, int32(s.tokens[len(s.tokens)-1]))
		put(positions, i, int32(len(s.tokens)-1))
		for j, id := range s.blocks {
			put(tables, i*b.maxBlocks+j, id)
		}
	}
	return errors.Join(
		cuda.CopyToDeviceAsync(b.tokens, tokens[:4*batch], stream),
		cuda.CopyToDeviceAsync(b.positions, positions[:4*batch], stream),
		cuda.CopyToDeviceAsync(b.tables, tables[:4*batch*b.maxBlocks], stream))
}
