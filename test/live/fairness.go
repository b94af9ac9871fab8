package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// Two models of one GPU that both fit. Each is asked for more than half a minute's work at once, the one with short answers first.
const (
	shortAnswer, longAnswer = 0.2, 0.8 // seconds
	backlog                 = 34.0     // seconds of work for each
	overRun                 = 0.5      // mqfq's T, seconds
)

// fairnessBound is (D+1)(2T + τ₁ + τ₂) for D = 1, the most by which the service of two models that wait may differ in any interval
// (serving/schedule/mqfq.go, after MQFQ-Sticky's equation 1).
const fairnessBound = 2 * (2*overRun + shortAnswer + longAnswer)

// fairness compares the difference of service between two models that wait, live and simulated, with mqfq's bound. A policy without fairness
// has to exceed the bound; otherwise the load is too small. The stub engines wait and do not compute, so all seeds run at once.
func (r *run) fairness() (string, error) {
	var lock sync.Mutex
	apart, most, least := []float64{}, 0.0, backlog
	errs := make([]error, 2*r.seeds)
	each(len(errs), len(errs), func(i int) {
		policy, seed := []string{"mqfq", "fcfs"}[i%2], r.seed+uint64(i/2)
		b := bed{policy: policy, gpus: 1, services: []float64{shortAnswer, longAnswer}, memory: 0.5, load: loadSeconds, deadline: 1000, warm: true}
		if policy == "mqfq" {
			b.more = fmt.Sprintf(", d: 1, t: %g", overRun)
		}
		live, simulated, err := r.lags(fmt.Sprint("fairness-", i), b, r.flood(seed))
		if err != nil {
			errs[i] = fmt.Errorf("%s, seed %d: %w", policy, seed, err)
			return
		}
		lock.Lock()
		defer lock.Unlock()
		fmt.Printf("fairness: %s seed %d: services apart by %.2f s live, %.2f s simulated; mqfq's bound is %.2f s\n", policy, seed, live, simulated, fairnessBound)
		if policy == "mqfq" {
			apart, most = append(apart, live-simulated), max(most, live)
		} else {
			least = min(least, live)
		}
	})
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return "", errs[i]
	}
	if most > fairnessBound || least <= fairnessBound {
		return "", fmt.Errorf("services of two models that wait are %.2f s apart under mqfq, %.2f s under fcfs: the bound is %.2f s", most, least, fairnessBound)
	}
	return fmt.Sprintf("fairness-bound=%.2f mqfq-most=%.2f fcfs-least=%.2f live-minus-simulated%s", fairnessBound, most, least, interval(apart)), nil
}

// flood has all requests of the first model within the first second, and those of the second within the next. The seed orders them
// and says how long they are apart.
func (r *run) flood(seed uint64) []arrival {
	rng := rand.New(rand.NewPCG(seed, 78))
	var list []arrival
	for model, service := range []float64{shortAnswer, longAnswer} {
		for range int(backlog / service) {
			list = append(list, arrival{float64(model) + rng.Float64(), model})
		}
	}
	slices.SortFunc(list, func(a, b arrival) int { return int(1e9 * (a.at - b.at)) })
	return list
}

func (r *run) lags(name string, b bed, arrivals []arrival) (live, simulated float64, err error) {
	got, err := r.asked(name, b, arrivals)
	if err != nil {
		return 0, 0, err
	}
	o, err := r.simulated(name, b, arrivals)
	return lag(b.services, arrivals, got.latencies), o.Lag, err
}

// lag is the largest difference in service between the two models in any interval in which both have requests that wait. An engine answers one
// request at a time, so an answer's service is the time before its end.
func lag(services []float64, arrivals []arrival, latencies []float64) float64 {
	var ends [2][]float64
	for i, a := range arrivals {
		ends[a.model] = append(ends[a.model], a.at+latencies[i])
	}
	from := 0.0 // all have come
	for _, a := range arrivals {
		from = max(from, a.at)
	}
	to := min(slices.Max(ends[0])-services[0], slices.Max(ends[1])-services[1]) // the one's last answer begins
	apart := func(t float64) float64 {
		var sum [2]float64
		for m, list := range ends {
			for _, end := range list {
				sum[m] += min(services[m], max(0, t-end+services[m]))
			}
		}
		return sum[0] - sum[1]
	}
	least, most := apart(from), apart(from)
	for m, list := range ends {
		for _, end := range list {
			for _, t := range []float64{end - services[m], end} {
				if t = min(to, max(from, t)); t >= from {
					least, most = min(least, apart(t)), max(most, apart(t))
				}
			}
		}
	}
	return most - least
}
