// Command scale simulates a large cluster in virtual time, under each policy, with native and restored starts. The policies decide through
// package dispatch, as medusa-picker does.
//
// In: sizes. Out: a table of requests, decisions a second of processor time, and times to first token, with 95 % intervals if there are several
// seeds; with -page, a page around it. The processor time is that of the whole run: the simulation of the engines as well as the decisions. So the
// decisions alone are cheaper than the table says.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"medusa/serving/simulate"
)

// size is that of the cluster and of its load.
type size struct {
	profiles             string
	gpus, functions      int
	seeds                int
	rate, seconds        float64
	policies, strategies []string
}

func main() {
	var s size
	flag.StringVar(&s.profiles, "profiles", "serving/simulate/profiles/medusa-a100.yaml", "costs of models")
	flag.IntVar(&s.gpus, "gpus", 1000, "GPUs, eight on a node")
	flag.IntVar(&s.functions, "models", 300, "models")
	flag.Float64Var(&s.rate, "rate", 700, "requests a second")
	flag.Float64Var(&s.seconds, "seconds", 3600, "seconds of arrivals")
	flag.IntVar(&s.seeds, "seeds", 1, "seeds of arrivals")
	policies := flag.String("policies", "fcfs,mqfq,lalbo3,torpor", "policies")
	page := flag.String("page", "", "write a page with the table to this file")
	least := flag.Float64("least", 0, "fail if a policy decides fewer times a second of processor time")
	flag.Parse()
	s.policies, s.strategies = strings.Split(*policies, ","), []string{"native", "restored"}
	if err := s.run(*least, *page); err != nil {
		fmt.Fprintf(os.Stderr, "scale: %v\n", err)
		os.Exit(1)
	}
}

func (s *size) run(least float64, page string) error {
	runtime.GOMAXPROCS(1)
	folder, err := os.MkdirTemp("", "medusa-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	profiles, err := os.ReadFile(s.profiles)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "profiles.yaml"), profiles, 0o600); err != nil {
		return err
	}
	var table strings.Builder
	add := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		table.WriteString(line)
		fmt.Print(line)
	}
	add("| policy | starts | requests | decisions a second | p50 TTFT, s | p99 TTFT, s | in %g s, %% | cold starts, %% |\n|---|---|---:|---:|---:|---:|---:|---:|\n", deadline)
	slowest := math.Inf(1)
	for _, policy := range s.policies {
		for _, strategy := range s.strategies {
			path := filepath.Join(folder, "scenario.yaml")
			if err := os.WriteFile(path, []byte(s.scenario(policy, strategy)), 0o600); err != nil {
				return err
			}
			scenario, err := simulate.LoadScenario(path)
			if err != nil {
				return err
			}
			before := processor()
			result, err := simulate.Run(scenario, nil, nil)
			if err != nil {
				return err
			}
			took := processor() - before
			o := result.Variants[0]
			requests := 0
			for _, r := range o.Runs {
				if r.Served != r.Requests {
					return fmt.Errorf("%s: %d of %d requests were served", policy, r.Served, r.Requests)
				}
				requests += r.Requests
			}
			each := float64(requests) / took.Seconds()
			slowest = min(slowest, each)
			value := func(of func(*simulate.Summary) float64) string {
				e := o.Estimate(of)
				if s.seeds < 2 {
					return fmt.Sprintf("%.4g", e.Mean)
				}
				return fmt.Sprintf("%.4g ± %.2g", e.Mean, e.Half)
			}
			add("| %s | %s | %d | %.0f | %s | %s | %s | %s |\n", policy, strategy, requests, each, value(func(r *simulate.Summary) float64 { return r.TTFTP50 }),
				value(func(r *simulate.Summary) float64 { return r.TTFTP99 }), value(func(r *simulate.Summary) float64 { return 100 * r.SLO }),
				value(func(r *simulate.Summary) float64 { return 100 * r.ColdRatio }))
		}
	}
	fmt.Printf("\nscale: slowest=%.0f decisions a second on one processor\n", slowest)
	if page != "" {
		if err := os.WriteFile(page, []byte(s.page(page, table.String(), slowest)), 0o644); err != nil {
			return err
		}
	}
	if slowest < least {
		return fmt.Errorf("%.0f decisions a second are fewer than %.0f", slowest, least)
	}
	return nil
}

// deadline of all first tokens in seconds. It allows for a cold start.
const deadline = 10.0

// scenario has models of ten kinds, whose popularity follows Zipf's law, and arrivals in bursts, as Azure's traces have them.
func (s *size) scenario(policy, strategy string) string {
	var out strings.Builder
	parameters := ""
	if policy == "fcfs" || policy == "mqfq" {
		parameters = ", d: 16"
	}
	fmt.Fprintf(&out, "title: scale\nprofiles: profiles.yaml\nseed: 1\nseeds: %d\nstrategy: %s\npolicy: {name: %s%s}\n", s.seeds, strategy, policy, parameters)
	fmt.Fprintf(&out, "cluster: {nodes: %d, gpus: 8, gpu_memory_gb: 40, workers_per_gpu: 1, slots: 16}\n", (s.gpus+7)/8)
	fmt.Fprintf(&out, "workload: {kind: azure, rate: %g, burst: 3, duration_s: %g}\nfunctions:\n", s.rate, s.seconds)
	kinds := []string{"llama2-7b", "qwen1.5-7b", "qwen1.5-4b", "llama2-13b", "qwen1.5-14b", "yi-6b", "falcon-7b", "yi-9b", "qwen1.5-1.8b", "qwen1.5-0.5b"}
	for i := range s.functions {
		fmt.Fprintf(&out, "- {name: m%d, model: %s, rate: %g, slo_s: %g}\n", i, kinds[i%len(kinds)], 1/float64(i+1), deadline)
	}
	return out.String()
}

// processor is the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
