// Command scale simulates a large cluster in virtual time, under each policy, with native and restored starts. The policies decide through
// package dispatch, as medusa-picker does.
//
// In: sizes. Out: a table of requests, decisions a second of processor time, and times to first token. The processor time is that of the
// whole run: the simulation of the engines as well as the decisions. So the table is a lower bound of what the decisions alone would take.
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

	"medusa/simulate"
)

// size is that of the cluster and of its load.
type size struct {
	profiles             string
	gpus, functions      int
	rate, seconds        float64
	policies, strategies []string
}

func main() {
	var s size
	flag.StringVar(&s.profiles, "profiles", "simulate/profiles/medusa-a100.yaml", "costs of models")
	flag.IntVar(&s.gpus, "gpus", 1000, "GPUs, eight on a node")
	flag.IntVar(&s.functions, "models", 300, "models")
	flag.Float64Var(&s.rate, "rate", 700, "requests a second")
	flag.Float64Var(&s.seconds, "seconds", 3600, "seconds of arrivals")
	policies := flag.String("policies", "fcfs,mqfq,lalbo3", "policies")
	least := flag.Float64("least", 0, "fail if a policy decides fewer times a second of processor time")
	flag.Parse()
	s.policies, s.strategies = strings.Split(*policies, ","), []string{"native", "restored"}
	if err := s.run(*least); err != nil {
		fmt.Fprintf(os.Stderr, "scale: %v\n", err)
		os.Exit(1)
	}
}

func (s *size) run(least float64) error {
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
	fmt.Printf("%d GPUs, %d models, %g s of arrivals\n\n", s.gpus, s.functions, s.seconds)
	fmt.Println("| policy | starts | requests | decisions a second | p50 TTFT, s | p99 TTFT, s | cold starts, % |\n|---|---|---:|---:|---:|---:|---:|")
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
			r := result.Variants[0].Runs[0]
			if r.Served != r.Requests {
				return fmt.Errorf("%s: %d of %d requests were served", policy, r.Served, r.Requests)
			}
			each := float64(r.Requests) / took.Seconds()
			slowest = min(slowest, each)
			fmt.Printf("| %s | %s | %d | %.0f | %.3f | %.2f | %.2f |\n", policy, strategy, r.Requests, each, r.TTFTP50, r.TTFTP99, 100*r.ColdRatio)
		}
	}
	fmt.Printf("\nscale: slowest=%.0f decisions a second on one processor\n", slowest)
	if slowest < least {
		return fmt.Errorf("%.0f decisions a second are fewer than %.0f", slowest, least)
	}
	return nil
}

// scenario has models of ten kinds, whose popularity follows Zipf's law, and arrivals in bursts, as Azure's traces have them.
func (s *size) scenario(policy, strategy string) string {
	var out strings.Builder
	parameters := ""
	if policy != "lalbo3" {
		parameters = ", d: 16"
	}
	fmt.Fprintf(&out, "title: scale\nprofiles: profiles.yaml\nseed: 1\nstrategy: %s\npolicy: {name: %s%s}\n", strategy, policy, parameters)
	fmt.Fprintf(&out, "cluster: {nodes: %d, gpus: 8, gpu_memory_gb: 40, workers_per_gpu: 1, slots: 16}\n", (s.gpus+7)/8)
	fmt.Fprintf(&out, "workload: {kind: azure, rate: %g, burst: 3, duration_s: %g}\nfunctions:\n", s.rate, s.seconds)
	kinds := []string{"llama2-7b", "qwen1.5-7b", "qwen1.5-4b", "llama2-13b", "qwen1.5-14b", "yi-6b", "falcon-7b", "yi-9b", "qwen1.5-1.8b", "qwen1.5-0.5b"}
	for i := range s.functions {
		fmt.Fprintf(&out, "- {name: m%d, model: %s, rate: %g}\n", i, kinds[i%len(kinds)], 1/float64(i+1))
	}
	return out.String()
}

// processor is the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
