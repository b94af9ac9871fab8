package agent

import (
	"math"

	"medusa/serving/schedule"
)

// The Agent is the view that policies look at. Its answers are measurements if it has any.
var _ schedule.Cluster = (*Agent)(nil)

// GPUs implements [schedule.Cluster].
func (a *Agent) GPUs() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config.GPUs
}

// Accepts implements [schedule.Cluster]. If a model has failed on a GPU, it is accepted only elsewhere. If it has failed everywhere, it is
// accepted, so that its requests fail at once instead of waiting.
func (a *Agent) Accepts(gpu, fn int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.obstacle(gpu, fn)
	// mutant: a model that fails on one GPU
	if o == Broken {
		for g := range a.at {
			if !a.failing(a.at[g][fn]) {
				return false
			}
		}
		return true
	}
	return o == Turn
}

func (a *Agent) failing(i *instance) bool { return i.state == Failed && a.config.Clock() < i.retry }

// Holds implements [schedule.Cluster].
func (a *Agent) Holds(gpu, fn int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[gpu][fn].wanted
}

// InFlight implements [schedule.Cluster].
func (a *Agent) InFlight(gpu int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.flying(gpu)
}

func (a *Agent) flying(gpu int) int {
	n := 0
	for _, i := range a.at[gpu] {
		n += len(i.began)
	}
	return n
}

// Start implements [schedule.Cluster].
func (a *Agent) Start(gpu, fn int) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at[gpu][fn].wanted {
		return 0
	}
	return a.delay(a.at[gpu][fn])
}

// delay estimates how long an instance takes from its state to Awake.
func (a *Agent) delay(i *instance) float64 {
	m, measured := &a.config.Models[i.fn], &a.measured[i.fn]
	switch i.state {
	case Awake:
		return 0
	case Asleep1, Asleep2, Waking, Dozing:
		return measured.wake.or(m.Wake)
	}
	return measured.start.or(m.Start)
}

// Service implements [schedule.Cluster].
func (a *Agent) Service(fn int) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.service(fn)
}

func (a *Agent) service(fn int) float64 {
	return a.measured[fn].service.or(a.config.Models[fn].Service)
}

// Drain estimates the seconds until a number of waiting requests of a model have begun: the delay until its first engine answers, and then its
// answers, as many at a time as its engines take.
func (a *Agent) Drain(fn, waiting int) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	engines, first := 0, math.Inf(1)
	for _, row := range a.at {
		if row[fn].wanted {
			engines++
		}
		first = math.Min(first, a.delay(row[fn]))
	}
	return first + float64(waiting)*a.service(fn)/float64(max(1, engines)*a.config.Models[fn].Slots)
}

// FinishTime implements [schedule.Cluster].
func (a *Agent) FinishTime(gpu int) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, last := a.config.Clock(), 0.0
	for _, i := range a.at[gpu] {
		for _, began := range i.began {
			left := a.service(i.fn)
			if i.state == Awake {
				left -= now - math.Max(began, i.since)
			} else {
				left += math.Max(0, a.delay(i)-(now-i.since))
			}
			last = math.Max(last, left)
		}
	}
	return last
}

// Traffic implements [schedule.Cluster]: the transfers that engines make over the GPU's host link now. Whether a swap is heavy follows from its
// measured time, as for eviction.
func (a *Agent) Traffic(gpu int) schedule.Traffic {
	a.mu.Lock()
	defer a.mu.Unlock()
	most := schedule.Quiet
	for _, i := range a.at[gpu] {
		switch {
		case i.state == Starting, i.state == Waking && i.level == 2: // it reads files
			most = max(most, schedule.Cold)
		case i.state == Waking || i.state == Dozing && i.level == 1:
			// mutant: light swaps
			if a.heavy(i.fn) {
				most = max(most, schedule.Heavy)
			} else {
				most = max(most, schedule.Light)
			}
		}
	}
	return most
}

// Utilization implements [schedule.Cluster]: half of the GPU for each request, as MQFQ assumes without measurements.
func (a *Agent) Utilization(gpu int) float64 { return math.Min(1, 0.5*float64(a.InFlight(gpu))) }
