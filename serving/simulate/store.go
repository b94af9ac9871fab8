package simulate

import (
	"math"
	"slices"

	"medusa/serving/schedule"
)

// store is a node's copy of part of a remote store: artifacts, or weights on its disk. Beyond its limit the least recently used
// entries are removed; pinned ones stay.
type store struct {
	limit   float64 // GB; 0: none
	entries []entry
}

type entry struct {
	model  string
	gb     float64
	used   float64
	pinned bool
}

func (s *store) has(model string) bool {
	return slices.ContainsFunc(s.entries, func(e entry) bool { return e.model == model })
}

// put adds a fetched model, or records its use. A model that does not fit beside the pinned entries is not kept.
func (s *store) put(model string, gb, now float64) {
	total := gb
	pinned := gb
	for i := range s.entries {
		e := &s.entries[i]
		if e.model == model {
			e.used = now
			return
		}
		total += e.gb
		if e.pinned {
			pinned += e.gb
		}
	}
	if s.limit > 0 && pinned > s.limit {
		return
	}
	for s.limit > 0 && total > s.limit {
		oldest := -1
		for i, e := range s.entries {
			if !e.pinned && (oldest < 0 || e.used < s.entries[oldest].used) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		total -= s.entries[oldest].gb
		s.entries = slices.Delete(s.entries, oldest, oldest+1)
	}
	s.entries = append(s.entries, entry{model: model, gb: gb, used: now})
}

// locality is the place at which a node finds the artifact of a function.
func (s *sim) locality(n, fn int) schedule.Locality {
	switch {
	case s.spec.Artifacts == "" || s.spec.Artifacts == "local" || s.nodes[n].artifacts.has(s.fns[fn].Model):
		return schedule.Local
	case s.spec.Artifacts == "remote":
		return schedule.Remote
	}
	return schedule.Absent
}

// coldTimes are the seconds of a cold start on a node: on an idle host, and on one that serves already.
func (s *sim) coldTimes(n, fn int) (first, later float64, fetch bool) {
	f := &s.fns[fn]
	wait := math.Max(0, s.nodes[n].link-s.now)
	first, later = f.own.First, f.own.Later
	if f.native != nil {
		at := s.locality(n, fn)
		transfer := 0.0
		if at == schedule.Remote {
			transfer = wait + f.profile.ArtifactGB/s.spec.NetworkGBps
		}
		cost := func(native, own float64) float64 {
			return schedule.Cost{Native: native, Restore: own, Fetch: transfer}.Start(at)
		}
		first, later = cost(f.native.First, f.own.First), cost(f.native.Later, f.own.Later)
		fetch = at == schedule.Remote && first == transfer+f.own.First
	}
	if s.spec.Weights == "remote" && !s.nodes[n].weights.has(f.Model) {
		transfer := wait + f.profile.WeightsGB/s.spec.NetworkGBps
		first, later = first+transfer, later+transfer
	}
	return first, later, fetch
}

// fetched books the transfers of a cold start on the node's link and stores.
func (s *sim) fetched(n, fn int, artifact bool) {
	f, p := &s.fns[fn], &s.nodes[n]
	move := func(gb float64) { p.link = math.Max(p.link, s.now) + gb/s.spec.NetworkGBps }
	if artifact {
		move(f.profile.ArtifactGB)
		p.artifacts.put(f.Model, f.profile.ArtifactGB, s.now)
	}
	if s.spec.Weights == "remote" {
		if !p.weights.has(f.Model) {
			move(f.profile.WeightsGB)
		}
		p.weights.put(f.Model, f.profile.WeightsGB, s.now)
	}
}
