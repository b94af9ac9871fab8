package dispatch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"medusa/serving/schedule"
)

// A succession is a run in virtual time in which one picker follows another. All functions have waiting requests all the time. A new picker knows
// only which requests run, as agents report them.
type succession struct {
	policy  string
	params  schedule.Params
	gpus, d int
	service []float64 // by function
	changes []float64 // times at which another picker begins
	end     float64

	core    *Core
	now     float64
	next    int
	first   int // ID from which requests are the present picker's
	running []flight
	waiting []int     // by function
	given   []float64 // service until now, by function
	least   float64   // of the difference between functions 0 and 1, per weight
	most    float64
}

type flight struct {
	schedule.Decision
	began, ends float64
}

func (s *succession) GPUs() int               { return s.gpus }
func (s *succession) Accepts(gpu, _ int) bool { return s.InFlight(gpu) < s.d }
func (s *succession) Holds(gpu, fn int) bool  { return gpu%len(s.service) == fn }
func (s *succession) InFlight(gpu int) (n int) {
	for _, f := range s.running {
		if f.GPU == gpu {
			n++
		}
	}
	return n
}
func (s *succession) Start(int, int) float64 { return 0 }
func (s *succession) Service(fn int) float64 { return s.service[fn] }
func (s *succession) FinishTime(int) float64 { return 0 }
func (s *succession) Traffic(int) schedule.Traffic {
	return schedule.Quiet
}
func (s *succession) Utilization(int) float64 { return 0 }

// take replaces the picker.
func (s *succession) take(t *testing.T) {
	t.Helper()
	core, err := New(Config{Policy: s.policy, Params: s.params, GPUs: s.gpus}, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.core, s.first = core, s.next
	waiting := s.waiting
	s.waiting = make([]int, len(s.service))
	for fn, n := range waiting {
		for range n {
			s.arrive(fn)
		}
	}
}

func (s *succession) arrive(fn int) {
	s.core.Arrive(s.now, schedule.Request{ID: s.next, Fn: fn})
	s.next++
	s.waiting[fn]++
}

func (s *succession) decide() {
	for {
		d, ok := s.core.Next(s.now)
		if !ok {
			return
		}
		s.waiting[d.Request.Fn]--
		s.running = append(s.running, flight{d, s.now, s.now + s.service[d.Request.Fn]})
		s.arrive(d.Request.Fn)
	}
}

// pass advances the time, and gives service.
func (s *succession) pass(to float64) {
	for _, f := range s.running {
		s.given[f.Request.Fn] += to - s.now
	}
	s.now = to
	weight := func(fn int) float64 {
		if fn < len(s.params.Weights) {
			return s.params.Weights[fn]
		}
		return 1
	}
	difference := s.given[0]/weight(0) - s.given[1]/weight(1)
	s.least, s.most = math.Min(s.least, difference), math.Max(s.most, difference)
}

// widest runs, and returns the largest difference in service, per weight, between functions 0 and 1 in any interval.
func (s *succession) widest(t *testing.T) float64 {
	t.Helper()
	s.given, s.waiting = make([]float64, len(s.service)), make([]int, len(s.service))
	for fn := range s.waiting {
		s.waiting[fn] = 2 * s.gpus * s.d
	}
	s.take(t)
	s.decide()
	for changes := s.changes; s.now < s.end; {
		soonest := slices.MinFunc(s.running, func(a, b flight) int {
			if a.ends < b.ends {
				return -1
			}
			return 1
		})
		if len(changes) > 0 && changes[0] <= soonest.ends {
			s.pass(changes[0])
			changes = changes[1:]
			s.take(t)
			s.decide()
			continue
		}
		s.pass(soonest.ends)
		s.running = slices.DeleteFunc(s.running, func(f flight) bool { return f.Request.ID == soonest.Request.ID })
		if soonest.Request.ID >= s.first {
			s.core.Done(s.now, soonest.Request.ID, s.now-soonest.began, s.now-soonest.began, 0)
		} else {
			s.core.Freed(s.now) // the agent reports a place
		}
		s.decide()
	}
	return s.most - s.least
}

// The bound of docs/gateway.md, with a change of pickers at any moment: k changes cost k more times the bound of one picker, and the requests that
// run at a change. The rule without fairness exceeds the bound, so the load can show a difference.
func TestFairnessAcrossPickers(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 4))
	for round := range 60 {
		over := 1 + 9*rng.Float64()
		s := succession{policy: "mqfq", gpus: 1 + rng.IntN(4), d: 1 + rng.IntN(3), end: 4000}
		for range 2 + rng.IntN(3) {
			s.service = append(s.service, 0.2+5*rng.Float64())
			s.params.Weights = append(s.params.Weights, 1+2*rng.Float64())
		}
		s.params.Functions, s.params.D, s.params.T = len(s.service), s.d, &over
		for range rng.IntN(6) {
			s.changes = append(s.changes, s.end*rng.Float64())
		}
		slices.Sort(s.changes)
		k, places := float64(len(s.changes)), float64(s.d*s.gpus)
		tau := func(fn int) float64 { return s.service[fn] / s.params.Weights[fn] }
		one := (places + 1) * (2*over + tau(0) + tau(1))
		bound := (k+1)*one + k*places*math.Max(tau(0), tau(1))
		if got := s.widest(t); got > bound {
			t.Errorf("round %d: %g changes, a difference of %.1f, the bound is %.1f", round, k, got, bound)
		}
	}
	unfair := succession{policy: "fcfs", gpus: 1, d: 1, end: 4000, service: []float64{5, 0.5}, params: schedule.Params{Functions: 2, D: 1}}
	if got, bound := unfair.widest(t), 2*(20+5.5); got <= bound {
		t.Errorf("without fairness the difference is %.1f, within the bound of %.1f: the load shows nothing", got, bound)
	}
}

// With one picker after the other, mqfq's difference grows with the number of changes, not with time. A picker that charged no requests would not
// keep the bound.
func TestFairnessWithoutHistoryAtAll(t *testing.T) {
	over := 5.0
	s := succession{policy: "mqfq", gpus: 2, d: 2, end: 4000, service: []float64{6, 1}, params: schedule.Params{Functions: 2, D: 2, T: &over}}
	for at := 1.0; at < s.end; at += 1 { // a picker for each second, so there is never any history
		s.changes = append(s.changes, at)
	}
	one := 5.0 * (2*over + 7)
	if got := s.widest(t); got <= one {
		t.Errorf("a difference of %.1f although pickers change each second: the bound of one picker, %.1f, would hold without history", got, one)
	}
}
