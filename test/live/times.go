package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The recorded times of the stub engines, in seconds, by model. A start takes the same for all.
var services = []float64{0.1, 0.2, 0.3, 0.4, 0.5}

const (
	loadSeconds = 0.8
	deadline    = 1.2 // seconds, which some requests miss that have to wait for a start
	rate        = 3.0 // requests a second, over all models: two thirds of the engines' most, without starts
)

// outcome is that of a run, live or simulated.
type outcome struct {
	Latency  float64 `json:"latency_mean"`
	Deadline float64 `json:"slo_attainment"`
	Cold     float64 `json:"cold_ratio"`
	Others   float64 `json:"-"` // mean latency of the models but the first
	Lag      float64 `json:"fairness_lag_s"`
}

// arrival is a request to come.
type arrival struct {
	at    float64
	model int
}

// times runs the same arrivals live, with stub engines, and in the simulator, and states how far the two are apart.
func (r *run) times() (string, error) {
	var parts []string
	for _, policy := range policies {
		var apart [3][]float64
		for n := range r.seeds {
			arrivals := r.arrivals(r.seed + uint64(n))
			b := bed{policy: policy, gpus: 2, services: services, memory: 0.5, load: loadSeconds, deadline: deadline}
			live, err := r.live("times", b, arrivals)
			if err != nil {
				return "", fmt.Errorf("%s: %w", policy, err)
			}
			if err := r.planned(); err != nil {
				return "", fmt.Errorf("%s: %w", policy, err)
			}
			simulated, err := r.simulated("times", b, arrivals)
			if err != nil {
				return "", fmt.Errorf("%s: %w", policy, err)
			}
			fmt.Printf("times: %-7s seed %d: latency %.2f s live, %.2f s simulated; in time %.2f, %.2f; cold %.2f, %.2f\n", policy, r.seed+uint64(n),
				live.Latency, simulated.Latency, live.Deadline, simulated.Deadline, live.Cold, simulated.Cold)
			apart[0] = append(apart[0], live.Latency-simulated.Latency)
			apart[1] = append(apart[1], live.Deadline-simulated.Deadline)
			apart[2] = append(apart[2], live.Cold-simulated.Cold)
		}
		parts = append(parts, fmt.Sprintf("%s:latency%s,deadline%s,cold%s", policy, interval(apart[0]), interval(apart[1]), interval(apart[2])))
	}
	return fmt.Sprintf("seeds=%d live-minus-simulated %s", r.seeds, strings.Join(parts, " ")), nil
}

// student are the 97.5 % points of Student's t for 1 and more degrees of freedom. The last one is taken for more.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}

// interval is the mean of differences, with the half width of its 95 % interval if there are several.
func interval(list []float64) string {
	mean, half := spread(list)
	if len(list) < 2 {
		return fmt.Sprintf("=%+.2f", mean)
	}
	return fmt.Sprintf("=%+.2f±%.2f", mean, half)
}

func (r *run) arrivals(seed uint64) []arrival {
	rng := rand.New(rand.NewPCG(seed, 77))
	var list []arrival
	for at := 0.0; ; {
		at += rng.ExpFloat64() / rate
		if at > r.seconds {
			return list
		}
		list = append(list, arrival{at, rng.IntN(len(services))})
	}
}

// planned demands that `medusa plan` reads the log of the last run, and replays its requests. On a busy machine starts may take too long for
// intervals, of which it says so.
func (r *run) planned() error {
	out, err := exec.Command(filepath.Join(r.build, "medusa"), "plan", "--log", filepath.Join(r.work, "times.jsonl")).CombinedOutput()
	if !strings.Contains(string(out), "by the log") && !strings.Contains(string(out), "no interval can be given") {
		return fmt.Errorf("plan from the log: %w\n%s", err, out)
	}
	return nil
}

// simulated gives the same to `medusa simulate`, whose files have a name.
func (r *run) simulated(name string, b bed, arrivals []arrival) (outcome, error) {
	var profiles, scenario, trace strings.Builder
	profiles.WriteString("gpu: stub\ndevice: stub\nmodels:\n")
	eviction := map[string]string{"mqfq": "sticky", "torpor": "heavy-light"}[b.policy]
	if eviction == "" {
		eviction = "global-lru"
	}
	fmt.Fprintf(&scenario, "title: stub engines\nprofiles: %s-profiles.yaml\npolicy: {name: %s%s}\ncluster: {gpus: %d, gpu_memory_gb: %g, slots: 1, one_worker: true, eviction: %s}\nworkload: {kind: trace, file: %s-trace.csv}\nfunctions:\n", name, b.policy, b.more, b.gpus, 1/b.memory, eviction, name)
	for i, s := range b.services {
		fmt.Fprintf(&profiles, "  m%d: {memory_gb: 1, weights_gb: 1, service_s: %g, stages: {native: {ready: %g}}}\n", i, s, b.load)
		fmt.Fprintf(&scenario, "  - {name: m%d, slo_s: %g}\n", i, b.deadline)
	}
	trace.WriteString("arrival_s,prompt_tokens,output_tokens,function\n")
	for _, a := range arrivals {
		fmt.Fprintf(&trace, "%.6f,1,1,m%d\n", a.at, a.model)
	}
	for kind, text := range map[string]string{"profiles.yaml": profiles.String(), "scenario.yaml": scenario.String(), "trace.csv": trace.String()} {
		if err := os.WriteFile(filepath.Join(r.work, name+"-"+kind), []byte(text), 0o600); err != nil {
			return outcome{}, err
		}
	}
	cmd := exec.Command(filepath.Join(r.build, "medusa"), "simulate", filepath.Join(r.work, name+"-scenario.yaml"), "-o", "json")
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return outcome{}, fmt.Errorf("simulate: %w", err)
	}
	return firstRun(data)
}

// firstRun reads the only run of a result in JSON.
func firstRun(data []byte) (outcome, error) {
	var result struct {
		Variants []struct{ Runs []outcome }
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return outcome{}, fmt.Errorf("read simulation: %w", err)
	}
	if len(result.Variants) != 1 || len(result.Variants[0].Runs) != 1 {
		return outcome{}, fmt.Errorf("read simulation: not one run")
	}
	return result.Variants[0].Runs[0], nil
}
