package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// bounds measures the bounds that the papers state for mqfq, lalbo3 and torpor on one machine, with three agents behind Envoy. Engines are stubs
// whose answers take given times. The measurements come from the log of the picker's decisions. Each bound has a rival that exceeds it under the
// same load. Otherwise the load could not show a difference.
func (r *run) bounds() (string, error) {
	var all []string
	for _, part := range []func() (string, error){r.fairness, r.overtaking, r.deadlines} {
		result, err := part()
		if err != nil {
			return "", err
		}
		fmt.Printf("bounds: %s\n", result)
		all = append(all, result)
	}
	return strings.Join(all, " "), nil
}

// bench is a system and its load, for the measurement of a bound.
type bench struct {
	services []float64 // of an answer, by model
	weights  []float64 // nil: 1 each
	deadline float64
	agent    string // of each model in the agents' files
	load     float64
	wake     float64
	warmed   func(outputs []string) bool // whether engines have started as the bound assumes
	clients  []int                       // number of clients that ask each model again and again
	arrivals []arrival
}

// arrival is a planned request.
type arrival struct {
	at    float64
	model int
}

// on measures a policy. It returns the log of the requests that came after the engines had started.
func (b *bench) on(r *run, policy string) (*history, error) {
	s, err := r.newSystem()
	if err != nil {
		return nil, err
	}
	s.entry = func(m int) string {
		if b.weights == nil {
			return fmt.Sprintf("deadline: %g", b.deadline)
		}
		return fmt.Sprintf("deadline: %g, weight: %g", b.deadline, b.weights[m])
	}
	for i := range s.GPUs {
		if err := s.agent(i, len(b.services), func(m int) ([]string, string) { return r.stub(b.services[m], b.load, b.wake), b.agent }); err != nil {
			return nil, err
		}
	}
	log, err := s.pick(policy, 0, 100_000, len(b.services))
	if err != nil {
		return nil, err
	}
	if err := s.proxy(); err != nil {
		return nil, err
	}
	ask := asker(s.url())
	first := 0
	for round := 0; ; round++ {
		var outputs []string
		for _, a := range s.agents {
			outputs = append(outputs, a.output())
		}
		if round > 0 && (b.warmed == nil || b.warmed(outputs)) {
			break
		}
		if round == 50 {
			return nil, fmt.Errorf("engines have not started everywhere: %q", outputs)
		}
		for m := range b.services {
			if err := together(2*len(s.GPUs), func(int) error { return ask(m) }); err != nil {
				return nil, err
			}
			first += 2 * len(s.GPUs)
		}
	}
	if err := b.ask(r.bounded, ask); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, s.picker.output())
	}
	if err := errors.Join(s.empty(), s.stop(), s.replay(log)); err != nil {
		return nil, err
	}
	return readLog(log, first)
}

// ask sends the measured load: each client sends its requests one after the other for a time, or all arrivals are sent.
func (b *bench) ask(period time.Duration, ask func(model int) error) error {
	var models []int // by client
	for m, n := range b.clients {
		models = append(models, slices.Repeat([]int{m}, n)...)
	}
	began := time.Now()
	return errors.Join(
		together(len(models), func(i int) error {
			for time.Since(began) < period {
				if err := ask(models[i]); err != nil {
					return err
				}
			}
			return nil
		}),
		together(len(b.arrivals), func(i int) error {
			time.Sleep(time.Until(began.Add(time.Duration(b.arrivals[i].at * float64(time.Second)))))
			return ask(b.arrivals[i].model)
		}))
}

// asker returns a function that asks a model at an address.
func asker(url string) func(model int) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	return func(model int) error {
		return post(client, url, fmt.Sprintf(`{"model": "m%d", "prompt": "x"}`, model))
	}
}

// together calls do n times at once.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// stub is the command of an engine without a model.
func (r *run) stub(service, load, wake float64) []string {
	return []string{filepath.Join(r.build, "stub-engine"), "--listen", "127.0.0.1:{port}", "--model", "{name}",
		"--service", fmt.Sprintf("%gs", service), "--load", fmt.Sprintf("%gs", load), "--wake", fmt.Sprintf("%gs", wake)}
}

// fairness has models that wait all the time, and whose engines all run. It measures MQFQ's bound on the difference of their services.
func (r *run) fairness() (string, error) {
	const over, d = 0.5, 1
	b := &bench{services: []float64{0.3, 0.1, 0.2}, weights: []float64{1, 2, 1}, clients: []int{48, 16, 12}, agent: "memory: 0.3, slots: 4, start: 0.1, service: 0.2",
		warmed: func(outputs []string) bool {
			return !slices.ContainsFunc(outputs, func(text string) bool { return strings.Count(text, "serving m") < 3 })
		}}
	weight := func(m int) float64 { return b.weights[m] }
	// widest is the largest difference of two models, relative to its bound. The bound is the one for one machine, with all requests that three agents
	// run at once.
	widest := func(policy string) (got, bound float64, err error) {
		h, err := b.on(r, policy)
		if err != nil {
			return 0, 0, fmt.Errorf("fairness: %s: %w", policy, err)
		}
		for i := range b.services {
			for j := range i {
				limit := (3*d + 1) * (2*over + h.service(i)/weight(i) + h.service(j)/weight(j))
				if x := h.apart(i, j, weight); bound == 0 || x/limit > got/bound {
					got, bound = x, limit
				}
			}
		}
		return got, bound, nil
	}
	got, bound, err := widest(fmt.Sprintf("{name: mqfq, d: %d, t: %g}", d, over))
	if err != nil {
		return "", err
	}
	rival, limit, err := widest("{name: fcfs}")
	if err != nil {
		return "", err
	}
	if got > bound || rival <= limit {
		return "", fmt.Errorf("mqfq: services differ by %.2f s, the bound is %.2f s; fcfs: %.2f s of %.2f s", got, bound, rival, limit)
	}
	return fmt.Sprintf("mqfq-difference=%.2fs bound=%.2fs fcfs-difference=%.2fs", got, bound, rival), nil
}

// overtaking has models that are asked all the time and others that are asked now and then, with one engine at a time on a GPU. It counts the later
// requests that are decided while one waits.
func (r *run) overtaking() (string, error) {
	const limit, gpus = 5, 3
	b := &bench{services: slices.Repeat([]float64{0.5}, 8), clients: []int{6, 6, 6, 1, 1, 1, 1, 1}, agent: "memory: 0.9, asleep: 0.01, sleep: 1, slots: 1, start: 0.1, wake: 0.1, service: 0.5"}
	measure := func(limit int) (got, bound int, err error) {
		policy := fmt.Sprintf("{name: lalbo3, o3_limit: %d}", limit)
		h, err := b.on(r, policy)
		if err != nil {
			return 0, 0, fmt.Errorf("overtaking: %s: %w", policy, err)
		}
		// A request is passed over limit+1 times. Then it gets a GPU, or is bound to a GPU that holds its model and will be free before another could
		// have it. There it waits for one request. In that time, each of the other GPUs begins as many as fit.
		return h.overtaken(), limit + 1 + (gpus-1)*(1+int(math.Floor(h.longest()/h.shortest()))), nil
	}
	got, bound, err := measure(limit)
	if err != nil {
		return "", err
	}
	rival, _, err := measure(100_000)
	if err != nil {
		return "", err
	}
	if got > bound || rival <= bound {
		return "", fmt.Errorf("lalbo3: %d later requests overtake one, the bound is %d; without a limit %d", got, bound, rival)
	}
	return fmt.Sprintf("lalbo3-overtaken=%d bound=%d without-limit=%d", got, bound, rival), nil
}

// share of answers in time that torpor has to reach (its paper's percentile).
const share = 0.98

// deadlines has four times as many models as GPUs. Torpor swaps engines, and so answers in time behind Envoy and on one machine.
func (r *run) deadlines() (string, error) {
	const models, rate = 12, 0.45
	b := &bench{services: slices.Repeat([]float64{0.1}, models), deadline: 2.5, load: 1.2, wake: 0.1,
		agent: "memory: 0.45, slots: 1, start: 1.2, wake: 0.1, service: 0.1, sleep: 1, asleep: 0.001"}
	rng := rand.New(rand.NewPCG(r.seed, 3))
	for at := 0.0; ; {
		if at += rng.ExpFloat64() / (rate * models); at > 3*r.bounded.Seconds() { // a share of 0.98 needs some hundred requests
			break
		}
		b.arrivals = append(b.arrivals, arrival{at, rng.IntN(models)})
	}
	swapped, err := b.on(r, "{name: torpor}")
	if err != nil {
		return "", fmt.Errorf("deadlines: %w", err)
	}
	alone, err := b.alone(r)
	if err != nil {
		return "", fmt.Errorf("deadlines: one machine: %w", err)
	}
	b.agent = strings.Replace(b.agent, "sleep: 1", "sleep: 0", 1)
	started, err := b.on(r, "{name: fcfs}")
	if err != nil {
		return "", fmt.Errorf("deadlines: fcfs: %w", err)
	}
	got, _ := swapped.inTime(b.deadline)
	one, _ := alone.inTime(b.deadline)
	rival, _ := started.inTime(b.deadline)
	if got < share || rival >= share {
		return "", fmt.Errorf("torpor: %.3f in time, the aim is %.2f, on one machine %.3f; fcfs without swaps %.3f", got, share, one, rival)
	}
	return fmt.Sprintf("torpor-in-time=%.3f aim=%.2f one-machine=%.3f fcfs-in-time=%.3f", got, share, one, rival), nil
}

// alone measures torpor in `medusa serve`, with as many GPUs as there are agents.
func (b *bench) alone(r *run) (*history, error) {
	port, err := freePort("127.0.0.1")
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "listen: 127.0.0.1:%d\ngpus: ['0', '1', '2']\npolicy: {name: torpor}\nretry: 0\nhost_memory_gb: 3\nmodels:\n", port)
	for m, service := range b.services {
		fmt.Fprintf(&out, "- {name: m%d, %s, deadline: %g, command: ['%s']}\n", m, b.agent, b.deadline, strings.Join(r.stub(service, b.load, b.wake), "', '"))
	}
	config, log := filepath.Join(r.work, "serve.yaml"), filepath.Join(r.work, "serve.jsonl")
	if err := os.WriteFile(config, []byte(out.String()), 0o600); err != nil {
		return nil, err
	}
	p, err := r.start("http://", filepath.Join(r.build, "medusa"), "serve", config, "--decisions", log)
	if err != nil {
		return nil, err
	}
	ask := asker(fmt.Sprintf("http://127.0.0.1:%d", port))
	first := 0
	for m := range b.services {
		if err := together(6, func(int) error { return ask(m) }); err != nil {
			return nil, err
		}
		first += 6
	}
	if err := b.ask(r.bounded, ask); err != nil {
		return nil, err
	}
	if err := p.stop(); err != nil {
		return nil, err
	}
	return readLog(log, first)
}
