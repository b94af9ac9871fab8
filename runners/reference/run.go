package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"medusa/runners/reference/engine"
	"medusa/runners/reference/marks"
	"medusa/runners/reference/serve"
)

func newRun() *cobra.Command {
	var o options
	var file, batches string
	var steps int
	w := serve.Workload{}
	cmd := &cobra.Command{
		Use:   "run --model DIR (--workload FILE | --batches 1,2,4)",
		Short: "Decode prompts made from a seed, and print every token",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if (file == "") == (batches == "") {
				return usageError{fmt.Errorf("one of --workload and --batches is needed")}
			}
			if file != "" {
				w, err = serve.ReadWorkload(file)
			} else {
				w.Runs, err = serve.ParseRuns(batches, steps)
			}
			if err != nil {
				return usageError{err}
			}
			return o.open(cmd, func(e *engine.Engine) error {
				results, err := serve.Execute(e, w)
				if err != nil {
					return err
				}
				marks.CallLog("served")
				if o.output == "json" {
					steps := make([]float64, len(results))
					for i, r := range results {
						steps[i] = r.StepMS
					}
					return printJSON(cmd.OutOrStdout(), struct {
						report
						Runs   []serve.Result `json:"runs"`
						StepMS []float64      `json:"step_ms"` // by run
					}{newReport(e.Report()), results, steps})
				}
				for _, r := range results {
					for slot, tokens := range r.Tokens {
						fmt.Fprintf(cmd.OutOrStdout(), "batch=%d slot=%d tokens=%v\n", r.Batch, slot, tokens)
					}
				}
				return nil
			})
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringVar(&file, "workload", "", "JSON `file` with seed, min_prompt, max_prompt and runs [{batch, steps}]")
	f.StringVar(&batches, "batches", "", "`sizes` to decode at, each with its own steps where given: 1:33,2,4")
	f.IntVar(&steps, "steps", 2, "decode `steps` of the sizes that give none")
	f.Uint64Var(&w.Seed, "seed", 1, "`seed` of the prompts")
	f.IntVar(&w.MinPrompt, "min-prompt", 2, "`tokens` of the shortest prompt")
	f.IntVar(&w.MaxPrompt, "max-prompt", 8, "`tokens` of the longest prompt")
	return cmd
}
