package agent

import (
	"math"
	"slices"

	"medusa/serving/schedule"
)

// slack tolerates the rounding of sums of shares.
const slack = 1e-9

// fits reports whether a GPU has room for a model if each engine goes that may go.
func (a *Agent) fits(gpu, fn int) bool {
	need := a.awake(fn)
	for _, i := range a.at[gpu] {
		if i.fn != fn && i.wanted && (len(i.began) > 0 || a.keeps(i)) {
			need += a.awake(i.fn)
		}
	}
	return need <= 1+slack
}

// Admit gives a decided request its place: it chooses the engines that make room, and has the engine started or woken. Acquire waits for the
// engine.
func (a *Agent) Admit(d schedule.Decision, active func(fn int) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.at[d.GPU][d.Request.Fn]
	i.began[d.Request.ID] = a.config.Clock()
	if i.wanted || a.closed || a.failing(i) {
		return
	}
	if i.state == Failed {
		a.enter(i, Cold)
	}
	i.wanted = true
	a.makeRoom(i, active, func(schedule.Resident) bool { return true })
	a.keep(i)
}

// Prefetch wakes an engine of a model whose weights are in host memory, for requests that cannot run yet (MQFQ §4.3). No engine of an active model
// makes room for it. If the model has an engine that is awake or waking, Prefetch does not wake another one.
func (a *Agent) Prefetch(fn int, active func(fn int) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	inactive := func(r schedule.Resident) bool { return !active(r.Fn) }
	var best *instance
	least := 0
	for _, row := range a.at {
		i := row[fn]
		if i.wanted || a.closed {
			return
		}
		if i.state != Asleep1 || i.level != 1 || !a.spare(i, inactive) {
			continue
		}
		// The least loaded GPU is likely to have a place first.
		if n := a.flying(i.gpu); best == nil || n < least {
			best, least = i, n
		}
	}
	if best == nil {
		return
	}
	best.wanted, best.lastUsed = true, a.config.Clock()
	a.makeRoom(best, active, inactive)
	a.keep(best)
}

// spare reports whether i has room once all idle engines that may go are away. Engines that sleep stay.
func (a *Agent) spare(i *instance, mayGo func(schedule.Resident) bool) bool {
	need := a.promised(i.gpu) + a.awake(i.fn) - a.asleep(i.fn)
	for _, r := range a.idle(i) {
		// mutant: engines of active models
		if mayGo(r) {
			need -= a.awake(r.Fn)
			if a.config.Models[r.Fn].Sleep > 0 {
				need += a.asleep(r.Fn)
			}
		}
	}
	return need <= 1+slack
}

// crowded reports whether another engine on i's GPU waits for room, so that i's engine gets no more requests until it has ended its own. This
// happens if engines have turned out larger than was known when the other one got its place.
func (a *Agent) crowded(i *instance) bool {
	for _, w := range a.at[i.gpu] {
		// mutant: engines that wait for larger ones
		if w != i && w.wanted && (w.state == Cold || w.state == Asleep1 || w.state == Asleep2) && a.promised(i.gpu) > 1+slack {
			return true
		}
	}
	return false
}

// makeRoom puts engines away until i can have its memory. mayGo decides which idle engines may go.
func (a *Agent) makeRoom(i *instance, active func(fn int) bool, mayGo func(schedule.Resident) bool) {
	for a.promised(i.gpu) > 1+slack {
		idle := slices.DeleteFunc(a.idle(i), func(r schedule.Resident) bool { return !mayGo(r) })
		if len(idle) == 0 {
			break
		}
		v := a.at[i.gpu][idle[a.config.Victim(a.config.Clock(), idle, active)].Fn]
		v.wanted, v.level = false, a.config.Models[v.fn].Sleep
		if v.level == 1 {
			a.makeHostRoom(v)
		}
		a.keep(v)
	}
	// Sleepers keep some memory. The one that has slept longest goes first.
	for a.promised(i.gpu) > 1+slack {
		v := a.longestAsleep(func(v *instance) bool { return v.gpu == i.gpu && v != i })
		if v == nil {
			return
		}
		v.level = 0
		a.keep(v)
	}
}

// keeps reports whether i is the last engine of a model that is to be kept.
func (a *Agent) keeps(i *instance) bool {
	// mutant: models that are kept
	if !a.config.Models[i.fn].Keep || a.config.Models[i.fn].Leaving {
		return false
	}
	for _, row := range a.at {
		if other := row[i.fn]; other != i && other.wanted {
			return false
		}
	}
	return true
}

// promised is the share of a GPU's memory that is taken once all planned stops, sleeps, starts and wake-ups are done.
func (a *Agent) promised(gpu int) float64 {
	sum := 0.0
	for _, i := range a.at[gpu] {
		switch {
		case i.wanted:
			sum += a.awake(i.fn)
		case i.level > 0:
			sum += a.asleep(i.fn)
		}
	}
	return sum
}

// awake and asleep are the shares of a GPU's memory that an engine of a model has. An engine may grow to the configured share, so the larger of the
// configured and the measured one counts.
func (a *Agent) awake(fn int) float64 {
	// mutant: measured memory of engines that are awake
	return max(a.config.Models[fn].Memory, a.measured[fn].awake)
}

func (a *Agent) asleep(fn int) float64 {
	// mutant: measured memory of sleepers
	return max(a.config.Models[fn].Asleep, a.measured[fn].asleep)
}

// taken is the share of a GPU's memory that engines have now.
func (a *Agent) taken(gpu int) float64 {
	sum := 0.0
	for _, i := range a.at[gpu] {
		sum += i.held
	}
	return sum
}

// idle lists the engines on i's GPU that may go.
func (a *Agent) idle(i *instance) (list []schedule.Resident) {
	for _, v := range a.at[i.gpu] {
		if v == i || !v.wanted || len(v.began) > 0 || a.keeps(v) {
			continue
		}
		r := schedule.Resident{Fn: v.fn, LastUsed: v.lastUsed, Anywhere: v.lastUsed}
		for g := range a.at {
			if w := a.at[g][v.fn]; w.wanted {
				r.Replicas++
				r.Anywhere = math.Max(r.Anywhere, w.lastUsed)
			}
		}
		r.Heavy = a.heavy(v.fn)
		list = append(list, r)
	}
	return list
}

// heavy reports whether swapping a model takes longer than running it (Torpor §5.3).
func (a *Agent) heavy(fn int) bool {
	return a.measured[fn].wake.or(a.config.Models[fn].Wake) > a.service(fn)
}

// makeHostRoom keeps the sleepers at level 1 within the host's memory. If v is too large even alone, it is stopped instead.
func (a *Agent) makeHostRoom(v *instance) {
	for {
		sum := int64(0)
		for _, row := range a.at {
			for _, i := range row {
				if !i.wanted && i.level == 1 {
					sum += a.host(i.fn)
				}
			}
		}
		if sum <= a.config.HostMemory {
			return
		}
		other := a.longestAsleep(func(i *instance) bool { return i != v && i.level == 1 })
		if other == nil {
			other = v
		}
		other.level = 0
		a.keep(other)
	}
}

// host is the host memory of a model's engine that sleeps at level 1. The measured size may lack the driver's own memory, so the larger of the
// configured and the measured one counts.
func (a *Agent) host(fn int) int64 {
	// mutant: measured host memory
	return max(a.config.Models[fn].Host, a.measured[fn].host)
}

// Host returns the host memory that an engine of a model takes while it sleeps at level 1.
func (a *Agent) Host(fn int) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.host(fn)
}

func (a *Agent) longestAsleep(ok func(*instance) bool) (found *instance) {
	for _, row := range a.at {
		for _, i := range row {
			if !i.wanted && i.level > 0 && ok(i) && (found == nil || i.lastUsed < found.lastUsed) {
				found = i
			}
		}
	}
	return found
}
