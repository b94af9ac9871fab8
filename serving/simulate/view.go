package simulate

import (
	"math"

	"medusa/serving/schedule"
)

// sim is the Cluster of the policy.
var _ schedule.Cluster = (*sim)(nil)

// GPUs implements [schedule.Cluster].
func (s *sim) GPUs() int { return len(s.gpus) }

// Accepts implements [schedule.Cluster].
func (s *sim) Accepts(g, fn int) bool {
	if s.spec.GPUSlots > 0 && s.gpus[g].flying >= s.spec.GPUSlots {
		return false
	}
	if s.free(g, fn) != nil {
		return true
	}
	// mutant: one worker of a function on a GPU
	if s.spec.OneWorker && s.Holds(g, fn) {
		return false
	}
	if s.spec.Replicas > 0 && len(s.fns[fn].workers) >= s.spec.Replicas {
		return false
	}
	return s.canFit(g, s.fns[fn].bytes) && s.canHost(g, fn)
}

// canHost reports whether the node's pool has a place for one more worker of fn, or can make one.
func (s *sim) canHost(g, fn int) bool {
	if s.spec.Pool == 0 {
		return true
	}
	n := &s.nodes[s.gpus[g].node]
	if len(n.containers) < s.spec.Pool {
		return true
	}
	for _, c := range n.containers {
		if c.worker == nil || (c.worker.idle() && !s.spec.Static) {
			return true
		}
	}
	return false
}

// Holds implements [schedule.Cluster].
func (s *sim) Holds(g, fn int) bool {
	for _, w := range s.gpus[g].workers { // fewer than a popular function has
		if w.fn == fn && w.state != stopping {
			return true
		}
	}
	return false
}

// InFlight implements [schedule.Cluster].
func (s *sim) InFlight(g int) int {
	n := 0
	for _, w := range s.gpus[g].workers {
		n += w.seen
	}
	return n
}

// Start implements [schedule.Cluster].
func (s *sim) Start(g, fn int) float64 {
	f := &s.fns[fn]
	if s.Holds(g, fn) {
		return 0
	}
	if f.profile.Host > 0 {
		if s.spec.HostWarm {
			return f.profile.Host
		}
		for _, c := range s.nodes[s.gpus[g].node].containers {
			if c.fn == fn && c.worker == nil && s.reaches(c, g) {
				return f.profile.Host
			}
		}
	}
	first, _, _ := s.coldTimes(s.gpus[g].node, fn)
	return first
}

// Service implements [schedule.Cluster].
func (s *sim) Service(fn int) float64 {
	f := &s.fns[fn]
	if f.served > 0 {
		return f.serviceSum / float64(f.served)
	}
	if f.engine == nil {
		return f.profile.Service
	}
	return f.engine.Prefill + meanOutput*(f.decode+f.decodeRequest)
}

// FinishTime implements [schedule.Cluster]. For a full batching worker it is the time until a slot is free.
func (s *sim) FinishTime(g int) float64 {
	t := 0.0
	for _, w := range s.gpus[g].workers {
		if w.inFlight == 0 {
			continue
		}
		left := math.Max(0, w.ready-s.now)
		if s.fns[w.fn].engine == nil {
			left = math.Max(left, w.until-s.now) + float64(w.pending())*s.Service(w.fn)
		} else if slots := s.slots(w.fn); slots > 0 && w.inFlight >= slots {
			left += s.Service(w.fn) / float64(slots)
		}
		t = math.Max(t, left)
	}
	return t
}

// Traffic implements [schedule.Cluster].
func (s *sim) Traffic(g int) schedule.Traffic {
	if s.gpus[g].copying <= s.now {
		return schedule.Quiet
	}
	return s.gpus[g].traffic
}

// Utilization implements [schedule.Cluster].
func (s *sim) Utilization(g int) float64 {
	u := 0.0
	for _, w := range s.gpus[g].workers {
		share := s.fns[w.fn].profile.Load
		if share == 0 {
			share = 0.5
		}
		u += share * float64(w.inFlight)
	}
	return math.Min(u, 1)
}
