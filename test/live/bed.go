package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"medusa/test/stubengine"
)

// bed is the setting of a live run, without its arrivals: engines take one request at a time.
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
	fmt.Fprintf(&out, "listen: 127.0.0.1:0\ngpus: ['0'%s]\npolicy: {name: %s%s}\nhost_memory_gb: 100\nmax_waiting: 1000\nmodels:\n", strings.Repeat(", '1'", b.gpus-1), b.policy, b.more)
	for i, s := range b.services {
		fmt.Fprintf(&out, "- {name: m%d, memory: %g, slots: 1, deadline: %g, start: %g, service: %g, sleep: %d, command: [%q, --listen, '127.0.0.1:{port}', --model, '{name}', --load, %gs, --wake, %gs, --service, %gs]}\n",
			i, b.memory, b.deadline, b.load, s, b.sleep, stub, b.load, b.wake, s)
	}
	return out.String()
}

// answers are the latencies of a live run's arrivals, in seconds, and how many starts it took.
type answers struct {
	latencies []float64
	starts    int
}

// asked sends the arrivals to `medusa serve`, whose files have a name. Its log of decisions has to replay.
func (r *run) asked(name string, b bed, arrivals []arrival) (answers, error) {
	config, log := filepath.Join(r.work, name+".yaml"), filepath.Join(r.work, name+".jsonl")
	if err := os.WriteFile(config, []byte(b.file(r.stub())), 0o600); err != nil {
		return answers{}, err
	}
	s, err := r.start(filepath.Join(r.build, "medusa"), "serve", config, "--decisions", log)
	if err != nil {
		return answers{}, err
	}
	if b.warm {
		if err := s.warm(len(b.services)); err != nil {
			return answers{}, errors.Join(err, s.kill())
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
		return answers{}, err
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return answers{}, fmt.Errorf("request %d: %w", i, errs[i])
	}
	if err := r.replay(log); err != nil {
		return answers{}, err
	}
	return answers{latencies, strings.Count(s.output(), "serving m")}, nil
}

// live makes a live run and returns its outcome.
func (r *run) live(name string, b bed, arrivals []arrival) (outcome, error) {
	got, err := r.asked(name, b, arrivals)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{Cold: float64(got.starts) / float64(len(arrivals))}
	of := make([][]float64, len(b.services))
	for i, l := range got.latencies {
		o.Latency += l / float64(len(arrivals))
		if l <= b.deadline {
			o.Deadline += 1 / float64(len(arrivals))
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
