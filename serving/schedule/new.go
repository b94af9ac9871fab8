package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Params are the parameters of all policies. The zero value of each means the paper's default.
type Params struct {
	Functions int       `json:"functions"`                   // number of functions
	D         int       `json:"d,omitempty"`                 // MQFQ and rivals: requests at once on a GPU; default 2
	T         *float64  `json:"t,omitempty"`                 // MQFQ: over-run in seconds; default 10
	Alpha     *float64  `json:"alpha,omitempty"`             // MQFQ: TTL over mean inter-arrival time; default 2
	Limit     float64   `json:"utilization_limit,omitempty"` // MQFQ: utilisation cap of the dynamic D; default none
	WarmFirst bool      `json:"warm_first,omitempty"`        // MQFQ: prefer, before all else, queues with a warm free slot (not in the paper)
	UnitTau   bool      `json:"unit_tau,omitempty"`          // MQFQ: advance virtual times by 1 instead of the service time (the paper's ablation)
	Weights   []float64 `json:"weights,omitempty"`           // MQFQ: per function; default 1
	O3Limit   *int      `json:"o3_limit,omitempty"`          // LALBO3: times a request may be passed over; default 25
	Deadline  []float64 `json:"deadline_s,omitempty"`        // Torpor: seconds per function
	Topology  Topology  `json:"topology"`                    // Torpor
	MaxBatch  int       `json:"max_batch,omitempty"`         // scale-out: requests on a worker before the next starts; default 16
	Seed      uint64    `json:"seed,omitempty"`              // torpor-random
}

// Names lists the policies New makes.
func Names() []string {
	return []string{"mqfq", "fcfs", "batch", "sjf", "rr", "rro3", "lb", "lalb", "lalbo3", "torpor", "torpor-fifo", "torpor-random", "scale-out"}
}

// New makes the named policy. It fails for an unknown name, and for parameters to which no paper gives a meaning.
func New(name string, p Params) (Policy, error) {
	if err := p.check(name); err != nil {
		return nil, err
	}
	d := or(p.D, 2)
	switch name {
	case "mqfq":
		m := newMQFQ(p.Functions, d, deref(p.T, 10), deref(p.Alpha, 2), p.Limit, p.Weights)
		m.warmFirst, m.unitTau = p.WarmFirst, p.UnitTau
		return m, nil
	case "fcfs":
		return newFCFS(d), nil
	case "batch":
		return newBatch(p.Functions, d), nil
	case "sjf":
		return newSJF(p.Functions, d), nil
	case "rr", "rro3":
		return &roundRobin{outOfOrder: name == "rro3"}, nil
	case "lb":
		return &loadBalance{}, nil
	case "lalb":
		return &lalb{}, nil
	case "lalbo3":
		return &lalb{limit: deref(p.O3Limit, 25)}, nil
	case "torpor", "torpor-fifo", "torpor-random":
		t := newTorpor(p.Deadline, p.Topology)
		t.fifo = name == "torpor-fifo"
		if name == "torpor-random" {
			t.random = rand.New(rand.NewPCG(p.Seed, 1))
		}
		return t, nil
	case "scale-out":
		return &scaleOut{most: or(p.MaxBatch, 16)}, nil
	}
	return nil, fmt.Errorf("choose policy %q: unknown name (known: %s)", name, strings.Join(Names(), ", "))
}

func (p Params) check(name string) error {
	bad := func(what string) error { return fmt.Errorf("configure policy %s: %s", name, what) }
	switch {
	case p.Functions < 1:
		return bad("needs at least one function")
	case p.D < 0:
		return bad("d must be positive")
	case p.T != nil && !(*p.T >= 0 && *p.T <= math.MaxFloat64):
		return bad("t must not be negative or infinite")
	case p.Alpha != nil && !(*p.Alpha >= 0 && *p.Alpha <= math.MaxFloat64):
		return bad("alpha must not be negative or infinite")
	case !(p.Limit >= 0 && p.Limit <= 1):
		return bad("utilization_limit is a share, 0 to 1")
	case p.O3Limit != nil && *p.O3Limit < 0:
		return bad("o3_limit must not be negative")
	case slices.ContainsFunc(p.Weights, func(w float64) bool { return !(w > 0) }):
		return bad("weights must be positive")
	case strings.HasPrefix(name, "torpor") && (len(p.Deadline) != p.Functions || slices.ContainsFunc(p.Deadline, func(d float64) bool { return !(d > 0) })):
		return bad("every function needs a deadline (slo_s)")
	}
	return nil
}

func or(v, unset int) int {
	if v == 0 {
		return unset
	}
	return v
}

func deref[T any](v *T, unset T) T {
	if v == nil {
		return unset
	}
	return *v
}
