// Package serve turns an engine's steps into answers: continuous batching of prompts, for a list of them or for clients that
// come and go, the workloads that tests compare token by token, and the self test that verification serves.
//
// In: an Engine and prompts as token ids. Out: token ids. It fails if one of the engine's steps does.
package serve

import "medusa/runners/reference/engine"

// Limits end a generation.
type Limits struct {
	MaxTokens int  // generated tokens a prompt
	IgnoreEOS bool // go on behind an end-of-text token
}

// Generate answers prompts greedily and returns the generated tokens of each, the end-of-text token left out.
func Generate(e *engine.Engine, prompts [][]int, limits Limits) ([][]int, error) {
	answers := make([][]int, len(prompts))
	b := NewBatch(e)
	defer b.drop()
	for i, p := range prompts {
		err := b.Add(&Job{Prompt: p, Limits: limits, Token: func(id int) { answers[i] = append(answers[i], id) }, Ended: func(Reason) {}})
		if err != nil {
			return nil, err
		}
	}
	for !b.Idle() {
		if err := b.Step(); err != nil {
			return nil, err
		}
	}
	return answers, nil
}
