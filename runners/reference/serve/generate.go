// Package serve turns an engine's steps into answers: continuous batching of prompts, the workloads that tests compare
// token by token, and the self test that verification serves.
//
// In: an Engine and prompts as token ids. Out: token ids. It fails if one of the engine's steps does.
package serve

import (
	"slices"

	"medusa/runners/reference/engine"
)

// Limits end a generation.
type Limits struct {
	MaxTokens int  // generated tokens a prompt
	IgnoreEOS bool // go on behind an end-of-text token
}

// Generate answers prompts greedily and returns the generated tokens of each, the end-of-text token left out. As many
// prompts are worked on at a time as the engine's largest batch and its KV cache take at their full length; one that ends
// makes room for the next, so the batch size changes on the way.
func Generate(e *engine.Engine, prompts [][]int, limits Limits) ([][]int, error) {
	answers := make([][]int, len(prompts))
	type active struct {
		*engine.Sequence
		index int
	}
	room := e.FreeBlocks() // not promised to a running prompt
	blocks := func(index int) int { return e.BlocksOf(len(prompts[index]) + limits.MaxTokens) }
	var running []active
	defer func() {
		for _, a := range running {
			e.Drop(a.Sequence)
		}
	}()
	for next := 0; next < len(prompts) || len(running) > 0; {
		var admitted []*engine.Sequence
		for next < len(prompts) && len(running) < e.MaxBatch() {
			// The first of a batch is let in whatever it needs: a prompt that the whole cache cannot hold is its own error.
			if blocks(next) > room && len(running) > 0 {
				break
			}
			room -= blocks(next)
			s, err := e.NewSequence(prompts[next])
			if err != nil {
				return nil, err
			}
			running = append(running, active{s, next})
			admitted = append(admitted, s)
			next++
		}
		if _, err := e.Prefill(admitted); err != nil {
			return nil, err
		}
		running = slices.DeleteFunc(running, func(a active) bool {
			generated := a.Tokens()[len(prompts[a.index]):]
			if !ended(e, a.Sequence, generated, limits) {
				return false
			}
			answers[a.index] = trim(e, slices.Clone(generated), limits)
			e.Drop(a.Sequence)
			room += blocks(a.index)
			return true
		})
		if len(running) == 0 {
			continue
		}
		batch := make([]*engine.Sequence, len(running))
		for i, a := range running {
			batch[i] = a.Sequence
		}
		if _, err := e.Decode(batch); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// ended reports whether a sequence has all that was asked for.
func ended(e *engine.Engine, s *engine.Sequence, generated []int, limits Limits) bool {
	if len(generated) >= limits.MaxTokens || e.Full(s) {
		return true
	}
	return !limits.IgnoreEOS && len(generated) > 0 && isEOS(e, generated[len(generated)-1])
}

func isEOS(e *engine.Engine, token int) bool { return slices.Contains(e.Config().EOS, token) }

// trim cuts a generation to the limit and takes the end-of-text token off.
func trim(e *engine.Engine, tokens []int, limits Limits) []int {
	tokens = tokens[:min(len(tokens), max(0, limits.MaxTokens))]
	if n := len(tokens); n > 0 && !limits.IgnoreEOS && isEOS(e, tokens[n-1]) {
		return tokens[:n-1]
	}
	return tokens
}
