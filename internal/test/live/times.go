package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"medusa/internal/test/stubengine"
)

// The recorded times of the stub engines, in seconds, by model. A start takes the same for all.
var services = []float64{0.1, 0.2, 0.3, 0.4, 0.5}

const (
	loadSeconds = 0.8
	deadline    = 3.0 // seconds
	rate        = 3.0 // requests a second, over all models: two thirds of the engines' most, without starts
)

// outcome is that of a run, live or simulated.
type outcome struct {
	Latency  float64 `json:"latency_mean"`
	Deadline float64 `json:"slo_attainment"`
	Cold     float64 `json:"cold_ratio"`
	Others   float64 `json:"-"` // mean latency of the models but the first
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
			live, err := r.live("times", bed{policy: policy, gpus: 2, services: services, memory: 0.5, load: loadSeconds, deadline: deadline}, arrivals)
			if err != nil {
				return "", fmt.Errorf("%s: %w", policy, err)
			}
			if err := r.planned(); err != nil {
				return "", fmt.Errorf("%s: %w", policy, err)
			}
			simulated, err := r.simulated(policy, arrivals)
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

// bed is what a live run has besides its arrivals: engines take one request at a time.
type bed struct {
	policy, more string // its name, and parameters in YAML
	gpus         int
	services     []float64 // seconds of an answer, by model
	memory       float64   // of each model
	load, wake   float64   // seconds
	sleep        int
	deadline     float64
	warm         bool // each model is asked once before the arrivals
}

func (b *bed) file(stub string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "listen: 127.0.0.1:0\ngpus: ['0'%s]\npolicy: {name: %s%s}\nhost_memory_gb: 100\nmodels:\n", strings.Repeat(", '1'", b.gpus-1), b.policy, b.more)
	for i, s := range b.services {
		fmt.Fprintf(&out, "- {name: m%d, memory: %g, slots: 1, deadline: %g, start: %g, service: %g, sleep: %d, command: [%q, --listen, '127.0.0.1:{port}', --model, '{name}', --load, %gs, --wake, %gs, --service, %gs]}\n",
			i, b.memory, b.deadline, b.load, s, b.sleep, stub, b.load, b.wake, s)
	}
	return out.String()
}

// live sends the arrivals to `medusa serve`, whose files have a name.
func (r *run) live(name string, b bed, arrivals []arrival) (outcome, error) {
	config, log := filepath.Join(r.work, name+".yaml"), filepath.Join(r.work, name+".jsonl")
	if err := os.WriteFile(config, []byte(b.file(r.stub())), 0o600); err != nil {
		return outcome{}, err
	}
	s, err := r.start(filepath.Join(r.build, "medusa"), "serve", config, "--decisions", log)
	if err != nil {
		return outcome{}, err
	}
	if b.warm {
		if err := s.warm(len(b.services)); err != nil {
			return outcome{}, errors.Join(err, s.kill())
		}
	}
	var all sync.WaitGroup
	latencies, errs := make([]float64, len(arrivals)), make([]error, len(arrivals))
	began := time.Now()
	for i, a := range arrivals {
		time.Sleep(time.Until(began.Add(time.Duration(a.at * float64(time.Second)))))
		all.Go(func() {
			ctx, cancel := within()
			defer cancel()
			sent := time.Now()
			_, errs[i] = stubengine.Ask(ctx, s.url, fmt.Sprint("m", a.model), "x", false)
			latencies[i] = time.Since(sent).Seconds()
		})
	}
	all.Wait()
	if err := s.stop(); err != nil {
		return outcome{}, err
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return outcome{}, fmt.Errorf("request %d: %w", i, errs[i])
	}
	if err := r.replay(log); err != nil {
		return outcome{}, err
	}
	o := outcome{Cold: float64(strings.Count(s.output(), "serving m")) / float64(len(arrivals))}
	of := make([][]float64, len(b.services))
	for i, l := range latencies {
		o.Latency += l / float64(len(latencies))
		if l <= b.deadline {
			o.Deadline += 1 / float64(len(latencies))
		}
		of[arrivals[i].model] = append(of[arrivals[i].model], l)
	}
	o.Others, _ = spread(slices.Concat(of[1:]...))
	return o, nil
}

// warm asks each model once, all at the same time.
func (s *server) warm(models int) error {
	errs := make([]error, models)
	each(models, models, func(i int) {
		ctx, cancel := within()
		defer cancel()
		_, errs[i] = stubengine.Ask(ctx, s.url, fmt.Sprint("m", i), "x", false)
	})
	return errors.Join(errs...)
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

// simulated gives the same to `medusa simulate`.
func (r *run) simulated(policy string, arrivals []arrival) (outcome, error) {
	var profiles, scenario, trace strings.Builder
	profiles.WriteString("gpu: stub\ndevice: stub\nmodels:\n")
	eviction := map[string]string{"mqfq": "sticky", "torpor": "heavy-light"}[policy]
	if eviction == "" {
		eviction = "global-lru"
	}
	fmt.Fprintf(&scenario, "title: stub engines\nprofiles: profiles.yaml\npolicy: {name: %s}\ncluster: {gpus: 2, gpu_memory_gb: 2, slots: 1, one_worker: true, eviction: %s}\nworkload: {kind: trace, file: trace.csv}\nfunctions:\n", policy, eviction)
	for i, s := range services {
		fmt.Fprintf(&profiles, "  m%d: {memory_gb: 1, weights_gb: 1, service_s: %g, stages: {native: {ready: %g}}}\n", i, s, loadSeconds)
		fmt.Fprintf(&scenario, "  - {name: m%d, slo_s: %g}\n", i, deadline)
	}
	trace.WriteString("arrival_s,prompt_tokens,output_tokens,function\n")
	for _, a := range arrivals {
		fmt.Fprintf(&trace, "%.6f,1,1,m%d\n", a.at, a.model)
	}
	for name, text := range map[string]string{"profiles.yaml": profiles.String(), "scenario.yaml": scenario.String(), "trace.csv": trace.String()} {
		if err := os.WriteFile(filepath.Join(r.work, name), []byte(text), 0o600); err != nil {
			return outcome{}, err
		}
	}
	cmd := exec.Command(filepath.Join(r.build, "medusa"), "simulate", filepath.Join(r.work, "scenario.yaml"), "-o", "json")
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
