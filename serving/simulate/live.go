package simulate

import (
	"math"
	"strings"

	"medusa/serving/dispatch"
)

// live replays the requests of a server's log under its configuration, or a changed one.
type live struct {
	record   *dispatch.Record
	least    float64            // seconds of waiting an hour that a change has to save
	profiles map[string]profile // from the file that the user names; nil without one
	from     float64            // of the first request
	window   float64            // seconds
	windows  int
	fns      []int     // by request: its model in the last configuration, or -1
	services []float64 // by model: the mean of the requests that were served, or the file's estimate
}

// replayed is the result of a replay.
type replayed struct {
	waiting []float64 // by window: seconds
	total   float64
	served  float64 // seconds of the requests whose waiting is in the log, too
	starts  []int   // by model
	never   int     // requests that could not run
}

// run simulates the requests with the given models.
func (l *live) run(models []dispatch.Model) (*replayed, error) {
	sc := l.scenario(models)
	var requests []request
	var asked []int
	for i, a := range l.record.Asked {
		if fn := l.fns[i]; fn >= 0 {
			requests, asked = append(requests, request{arrival: a.At - l.from, fn: int32(fn), service: a.Service}), append(asked, i)
		}
	}
	s, err := newSim(sc, requests, sc.Seed, nil)
	if err != nil {
		return nil, err
	}
	s.run()
	out := &replayed{waiting: make([]float64, l.windows), starts: make([]int, len(models))}
	for i := range requests {
		r := &requests[i]
		waited := r.start - r.arrival
		if !r.done {
			out.never++
			waited = l.record.To - l.from - r.arrival
		}
		out.waiting[min(int(r.arrival/l.window), l.windows-1)] += waited
		out.total += waited
		if l.record.Asked[asked[i]].Served {
			out.served += waited
		}
		if r.kind == cold {
			out.starts[r.fn]++
		}
	}
	return out, nil
}

// scenario describes the server. A GPU's memory is 1.
func (l *live) scenario(models []dispatch.Model) *Scenario {
	p := l.record.Params
	sc := &Scenario{Strategy: nativeStart, Seed: p.Seed, profiles: &profiles{Models: map[string]profile{}},
		Policy: PolicySpec{Name: l.record.Policy, D: p.D, T: p.T, Alpha: p.Alpha, UtilizationLimit: p.Limit, WarmFirst: p.WarmFirst,
			UnitTau: p.UnitTau, O3Limit: p.O3Limit, MaxBatch: p.MaxBatch},
		Cluster: ClusterSpec{Nodes: 1, GPUs: l.record.GPUs, GPUMemoryGB: 1, OneWorker: true, Sleepers: true, HostMemoryGB: l.record.HostGB, Eviction: eviction(l.record.Policy)}}
	for i, m := range models {
		was := &l.record.Models[i]
		f := Function{Name: m.Name, Model: m.Name, Slots: m.Slots, Keep: m.Keep && !m.Leaving}
		if i < len(p.Weights) {
			f.Weight = p.Weights[i]
		}
		if i < len(p.Deadline) {
			f.SLO = p.Deadline[i]
		}
		sc.Functions = append(sc.Functions, f)
		cost := profile{MemoryGB: m.Memory, Service: l.services[i], Stages: map[Strategy]map[string]float64{nativeStart: {"ready": l.start(&m, was)}}}
		if m.Sleep > 0 {
			cost.Host, _ = l.wake(&m)
			if cost.Host > cost.Service {
				cost.Class = "heavy"
			}
			if m.Sleep == 1 {
				cost.WeightsGB = l.host(&m)
			}
			if was.Sleep == 0 {
				sc.Cluster.HostMemoryGB += cost.WeightsGB // the change brings the memory that it takes
			}
			sc.Cluster.HostMemoryGB = math.Max(sc.Cluster.HostMemoryGB, 1e-6) // level 2 takes none
		}
		sc.profiles.Models[m.Name] = cost
	}
	return sc
}

// eviction is the eviction of `medusa serve` under a policy.
func eviction(policy string) string {
	switch {
	case policy == "mqfq":
		return "sticky"
	case strings.HasPrefix(policy, "torpor"):
		return "heavy-light"
	}
	return "global-lru"
}

// life has the starts, wake-ups and failures of a model's engines.
func (l *live) life(name string) dispatch.Life {
	if life := l.record.Engines[name]; life != nil {
		return *life
	}
	return dispatch.Life{}
}

// start is the time of a start: as measured, or as it would be with or without an artifact.
func (l *live) start(m, was *dispatch.Model) float64 {
	s := m.Start
	if seen := l.life(m.Name).StartSeconds; len(seen) > 0 {
		s = estimate(seen).Mean
	}
	if saved, known := l.saved(m.Name); known && m.Restored != was.Restored {
		if m.Restored {
			saved = -saved
		}
		s += saved
	}
	return math.Max(s, 0)
}

// saved returns the seconds by which a restored start is shorter than a native one, from the profiles.
func (l *live) saved(name string) (float64, bool) {
	p := l.profiles[name]
	native, err := p.load(nativeStart, false)
	restored, failed := p.load(restoredStart, false)
	return native - restored, err == nil && failed == nil
}

// wake is the time of a wake-up, and whether it was measured: in the log, or for the profiles.
func (l *live) wake(m *dispatch.Model) (float64, bool) {
	if seen := l.life(m.Name).WakeSeconds; len(seen) > 0 {
		return estimate(seen).Mean, true
	}
	if host := l.profiles[m.Name].Host; host > 0 {
		return host, true
	}
	return m.Wake, false
}

// host is the host memory of an engine that sleeps at level 1, in GB; 0 if it is unknown.
func (l *live) host(m *dispatch.Model) float64 {
	if m.HostGB > 0 {
		return m.HostGB
	}
	return l.profiles[m.Name].WeightsGB
}
