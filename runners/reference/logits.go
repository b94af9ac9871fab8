package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"medusa/runners/reference/engine"
)

// scored is a prompt with the logits behind it: Logits[0] from the prefill, the others from decode steps, each behind
// one more token of Tokens.
type scored struct {
	Prompt string      `json:"prompt"`
	Input  []int       `json:"input"`
	Tokens []int       `json:"tokens"`
	Logits [][]float32 `json:"logits"`
}

func newLogits() *cobra.Command {
	var o options
	var prompts []string
	var steps int
	cmd := &cobra.Command{
		Use:   "logits --model DIR --prompt TEXT...",
		Short: "Print the logits behind prompts as JSON",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(prompts) == 0 || steps < 0 {
				return usageError{errors.New("at least one --prompt and no negative --steps are needed")}
			}
			return o.open(cmd, func(e *engine.Engine) error {
				list, err := score(e, prompts, steps)
				if err != nil {
					return err
				}
				return printJSON(cmd.OutOrStdout(), struct {
					report
					Prompts []scored `json:"prompts"`
				}{newReport(e.Report()), list})
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringArrayVar(&prompts, "prompt", nil, "`text` to score; may be repeated")
	cmd.Flags().IntVar(&steps, "steps", 0, "decode `steps` behind each prompt")
	return cmd
}

// score prefills all prompts, then decodes them together.
func score(e *engine.Engine, prompts []string, steps int) ([]scored, error) {
	if len(prompts) > e.MaxBatch() {
		return nil, fmt.Errorf("score prompts: %d at a time, %d are possible", len(prompts), e.MaxBatch())
	}
	e.WantLogits = true
	var sequences []*engine.Sequence
	var list []scored
	for _, p := range prompts {
		ids, err := e.Tokenizer().Encode(p)
		if err != nil {
			return nil, err
		}
		s, err := e.NewSequence(ids)
		if err != nil {
			return nil, err
		}
		defer e.Drop(s)
		sequences = append(sequences, s)
		list = append(list, scored{Prompt: p, Input: ids})
	}
	step, err := e.Prefill(sequences)
	for n := 0; err == nil; n++ {
		for i := range list {
			list[i].Tokens = append(list[i].Tokens, step.Next[i])
			list[i].Logits = append(list[i].Logits, step.Logits[i])
		}
		if n == steps {
			return list, nil
		}
		step, err = e.Decode(sequences)
	}
	return nil, err
}
