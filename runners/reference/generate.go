package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"medusa/runners/reference/engine"
	"medusa/runners/reference/serve"
)

// answer is a prompt and the model's continuation.
type answer struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
	Tokens []int  `json:"tokens"`
}

func newGenerate() *cobra.Command {
	var o options
	var prompts []string
	limits := serve.Limits{}
	cmd := &cobra.Command{
		Use:   "generate --model DIR --prompt TEXT...",
		Short: "Continue prompts greedily",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(prompts) == 0 {
				return usageError{errors.New("at least one --prompt is needed")}
			}
			return o.open(cmd, func(e *engine.Engine) error {
				answers, err := generate(e, prompts, limits)
				if err != nil {
					return err
				}
				if o.output == "json" {
					return printJSON(cmd.OutOrStdout(), struct {
						report
						Answers []answer `json:"answers"`
					}{newReport(e.Report()), answers})
				}
				for _, a := range answers {
					fmt.Fprintf(cmd.OutOrStdout(), "%s%s\n", a.Prompt, a.Text)
				}
				return nil
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringArrayVar(&prompts, "prompt", nil, "`text` to continue; may be repeated")
	cmd.Flags().IntVar(&limits.MaxTokens, "max-tokens", 64, "`tokens` to generate a prompt")
	cmd.Flags().BoolVar(&limits.IgnoreEOS, "ignore-eos", false, "go on behind the end-of-text token")
	return cmd
}

func generate(e *engine.Engine, prompts []string, limits serve.Limits) ([]answer, error) {
	var ids [][]int
	for _, p := range prompts {
		list, err := e.Tokenizer().Encode(p)
		if err != nil {
			return nil, err
		}
		ids = append(ids, list)
	}
	tokens, err := serve.Generate(e, ids, limits)
	if err != nil {
		return nil, err
	}
	var answers []answer
	for i, p := range prompts {
		answers = append(answers, answer{p, e.Tokenizer().Decode(tokens[i]), tokens[i]})
	}
	return answers, nil
}
