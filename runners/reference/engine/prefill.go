package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"medusa/internal/cuda"
)

// prefill collects the rows of one eager forward over prompts.
type prefill struct {
	maxBlocks                    int
	tokens, positions, sequences []int32 // one a row
	last                         []int32 // the row of each sequence's last token
	tables                       []int32 // maxBlocks a sequence
}

func newPrefill(maxBlocks int) *prefill { return &prefill{maxBlocks: maxBlocks} }

// add appends a row.
func (p *prefill) add(token, position, sequence int) {
	p.tokens = append(p.tokens, int32(token))
	p.positions = append(p.positions, int32(position))
	p.sequences = append(p.sequences, int32(sequence))
}

// finish ends a sequence, which owns blocks, with a row.
func (p *prefill) finish(row int, blocks []int32) {
	p.last = append(p.last, int32(row))
	p.tables = append(p.tables, blocks...)
	p.tables = append(p.tables, make([]int32, p.maxBlocks-len(blocks))...)
}

// prefillOutputs are the addresses of a prefill's results, valid until it is released.
type prefillOutputs struct{ logits, next cuda.DevicePtr }

// eagerPrefill runs a forward with temporaries of its own, waits for it, and calls done while they are still there.
func (e *Engine) eagerPrefill(p *prefill, done func(prefillOutputs) error) error {
	var t temporaries
	err := func() error {
		in := tokenInputs{rows: len(p.tokens), lasts: len(p.last)}
		for _, input := range []struct {
			at     *cuda.DevicePtr
			values []int32
		}{{&in.tokens, p.tokens}, {&in.positions, p.positions}, {&in.sequences, p.sequences}, {&in.last, p.last}, {&in.tables, p.tables}} {
			var err error
			if *input.at, err = t.allocate(uint64(4 * len(input.values))); err != nil {
				return fmt.Errorf("allocate prefill inputs: %w", err)
			}
			if err := e.staging.put(*input.at, int32s(input.values)); err != nil {
				return fmt.Errorf("copy prefill inputs: %w", err)
			}
		}
		logits, err := t.allocate(uint64(in.lasts) * uint64(e.config.VocabSize) * e.elementSize())
		if err != nil {
			return fmt.Errorf("allocate logits: %w", err)
		}
		next, err := t.allocate(uint64(4 * in.lasts))
		if err != nil {
			return fmt.Errorf("allocate next tokens: %w", err)
		}
		a, err := e.newActivations(&t, in.rows, in.lasts)
		if err != nil {
			return err
		}
		if err := e.forward(in, a, e.config.Layers, logits, next); err != nil {
			return err
		}
		if err := e.device.compute.Synchronize(); err != nil {
			return err
		}
		return done(prefillOutputs{logits, next})
	}()
	return errors.Join(err, t.release())
}

// Prefill computes the prompts of sequences and appends the first generated token to each. As many prompts as fit share
// a forward; all of a prompt's tokens are in one.
func (e *Engine) Prefill(sequences []*Sequence) (Step, error) {
	var all Step
	for len(sequences) > 0 {
		p, n := newPrefill(e.options.maxBlocks()), 0
		for n < len(sequences) && n < e.MaxBatch() && len(p.tokens)+len(sequences[n].tokens) <= e.options.MaxBatchedTokens {
			s := sequences[n]
			if err := e.reserve(s, len(s.tokens)-1); err != nil {
				return all, err
			}
			for position, token := range s.tokens {
				p.add(token, position, n)
			}
			p.finish(len(p.tokens)-1, s.blocks)
			n++
		}
		var step Step
		err := e.eagerPrefill(p, func(out prefillOutputs) (err error) {
			step, err = e.results(out.next, out.logits, n)
			return err
		})
		if err != nil {
			return all, e.session.Failed(fmt.Errorf("prefill %d sequences: %w", n, err))
		}
		step.accept(sequences[:n])
		all.Next, all.Logits = append(all.Next, step.Next...), append(all.Logits, step.Logits...)
		sequences = sequences[n:]
	}
	return all, nil
}

// results copies the next tokens, and the logits if they are wanted, to the host.
func (e *Engine) results(next, logits cuda.DevicePtr, n int) (Step, error) {
	step := Step{Next: make([]int, n)}
	raw := make([]byte, 4*n)
	if err := e.staging.get(raw, next); err != nil {
		return step, err
	}
	for i := range step.Next {
		step.Next[i] = int(int32(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	if !e.WantLogits {
		return step, nil
	}
	raw = make([]byte, uint64(n)*uint64(e.config.VocabSize)*e.elementSize())
	if err := e.staging.get(raw, logits); err != nil {
		return step, err
	}
	row := len(raw) / n
	for i := range n {
		step.Logits = append(step.Logits, floats(raw[i*row:(i+1)*row], e.storage))
	}
	return step, nil
}
