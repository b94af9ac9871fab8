package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"medusa/internal/atomicfile"
	"medusa/internal/printable"
	"medusa/internal/private"
	"medusa/serving/dispatch"
	"medusa/serving/simulate"
)

// scenarioFlags adds the flags of simulate and plan that replace parts of a scenario file.
func scenarioFlags(cmd *cobra.Command, o *simulate.Overrides) {
	f := cmd.Flags()
	f.StringVar(&o.Profiles, "profiles", "", "file of cost profiles")
	f.StringSliceVar(&o.Models, "models", nil, "models to deploy, one function each")
	f.StringVar(&o.Strategy, "strategy", "", "cold start: native, async, no-graphs, kv-only or restored")
	f.StringVar(&o.Trace, "trace", "", "trace to replay (Azure LLM inference, BurstGPT, Mooncake, or arrival_s,prompt_tokens,output_tokens)")
	f.Float64Var(&o.Rate, "rate", 0, "requests per second over all functions")
	f.Float64Var(&o.Duration, "duration", 0, "seconds of arrivals")
	f.IntVar(&o.GPUs, "gpus", 0, "GPUs per node")
	f.IntVar(&o.Nodes, "nodes", 0, "nodes")
	f.IntVar(&o.Slots, "slots", 0, "batch slots of a worker")
}

func newSimulateCmd() *cobra.Command {
	var o simulate.Overrides
	var format, html, decisions, replay string
	var functions bool
	cmd := &cobra.Command{
		Use:   "simulate [SCENARIO]",
		Short: "Predict the tail latency of a cluster under a policy, with and without Medusa",
		Long: `Simulates a cluster that starts workers on demand. It uses measured stage times, a trace and a policy, and simulates every
engine step. SCENARIO is a YAML file; flags replace it or override parts of it.`,
		Example: `  medusa simulate serving/simulate/scenarios/ten-models.yaml --html ten-models.html
  medusa simulate serving/simulate/scenarios/ten-models.yaml --decisions decisions.jsonl && medusa simulate --replay decisions.jsonl
  medusa simulate --profiles serving/simulate/profiles/medusa-a100.yaml --models llama2-7b,yi-6b --gpus 1 --rate 0.2 --compare fcfs+native,lalbo3+restored`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" {
				return usageError{fmt.Errorf("unknown output %q: table or json", format)}
			}
			if replay != "" {
				if len(args) > 0 || cmd.Flags().NFlag() > 1 {
					return usageError{errors.New("--replay takes no scenario and no other flag")}
				}
				return replayDecisions(cmd.OutOrStdout(), replay)
			}
			s, err := loadScenario(args, o)
			if err != nil {
				return err
			}
			bar, done := simulationBar(cmd.ErrOrStderr())
			var r *simulate.Result
			err = withDecisions(decisions, func(log *dispatch.Log) (err error) {
				r, err = simulate.Run(s, bar, log)
				return err
			})
			done()
			if err != nil {
				return err
			}
			if html != "" {
				if err := writePage(html, r); err != nil {
					return err
				}
			}
			if format == "json" {
				return r.WriteJSON(cmd.OutOrStdout())
			}
			if err := r.WriteTable(cmd.OutOrStdout(), functions); err != nil {
				return err
			}
			return writeFindings(cmd.OutOrStdout(), s, r)
		},
	}
	scenarioFlags(cmd, &o)
	cmd.Flags().StringVar(&o.Policy, "policy", "", "scheduling policy, such as lalbo3, mqfq, torpor or fcfs")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "first seed")
	cmd.Flags().IntVar(&o.Seeds, "seeds", 0, "number of seeds; more than one gives confidence intervals")
	cmd.Flags().StringSliceVar(&o.Compare, "compare", nil, "policies, strategies or POLICY+STRATEGY to run side by side")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	cmd.Flags().StringVar(&html, "html", "", "also write one self-contained page to this file")
	cmd.Flags().StringVar(&decisions, "decisions", "", "also write the log of all decisions to this file")
	cmd.Flags().StringVar(&replay, "replay", "", "make the decisions of this log again, and fail at the first that differs")
	cmd.Flags().BoolVar(&functions, "functions", false, "also print a row per function")
	return cmd
}

func loadScenario(args []string, o simulate.Overrides) (*simulate.Scenario, error) {
	path := ""
	if len(args) > 0 {
		path = args[0]
	} else if o.Profiles == "" || len(o.Models) == 0 {
		return nil, usageError{errors.New("needs a scenario file, or --profiles and --models")}
	}
	return simulate.Load(path, o)
}

// withDecisions calls run with a log that is written to path, or without one. A run that fails leaves no
// log.
func withDecisions(path string, run func(*dispatch.Log) error) error {
	if path == "" {
		return run(nil)
	}
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := atomicfile.Write(path, 0o644, in)
		_ = in.CloseWithError(err) // a run whose log cannot be written ends at once
		written <- err
	}()
	log := dispatch.NewLog(out)
	err := run(log)
	_ = out.CloseWithError(errors.Join(err, log.Close()))
	if failed := <-written; err == nil && failed != nil {
		return fmt.Errorf("write decision log: %w", failed)
	}
	return err
}

func replayDecisions(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("replay decision log: %w", err)
	}
	defer f.Close()
	r, err := dispatch.Replay(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	end := ""
	if r.Cut {
		end = ", the last line is incomplete"
	}
	_, err = fmt.Fprintf(w, "%s: runs %d, requests %d, decisions %d: identical%s\n", path, r.Runs, r.Requests, r.Decisions, end)
	return err
}

// simulationBar shows completed requests if standard error is a terminal, and otherwise shows no progress.
func simulationBar(w io.Writer) (step func(done, total int), finish func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("requests"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish())
	return func(done, total int) {
		if bar.GetMax() != total {
			bar.ChangeMax(total)
		}
		_ = bar.Set(done) // a bar that cannot be drawn does not stop the simulation
	}, func() { _ = bar.Finish() }
}

func writePage(path string, r *simulate.Result) error {
	f, err := private.Create(path)
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if err := r.WriteHTML(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("write page: %w", err)
	}
	return f.Close()
}

// writeFindings compares the result with the published figures that the scenario names.
func writeFindings(w io.Writer, s *simulate.Scenario, r *simulate.Result) error {
	found, err := s.Findings(r)
	if err != nil || len(found) == 0 {
		return err
	}
	fmt.Fprintln(w)
	for _, f := range found {
		verdict := string(f.Verdict)
		if f.Verdict == simulate.Within {
			verdict = "within tolerance"
		}
		printable.Fprintf(w, "%s, %s: published %s, here %s: %s\n", f.Figure.Paper, f.Figure.Claim, f.Published, f.Ours, verdict)
	}
	return nil
}
