package agent

import "slices"

// Vacant reports whether a model has neither an engine nor a request, so that its place may become another model's.
func (a *Agent) Vacant(fn int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, row := range a.at {
		if i := row[fn]; i.engine != nil || i.wanted || i.kept || len(i.began) > 0 {
			return false
		}
	}
	return true
}

// Reconfigure changes models and GPUs. Present ones keep their places: models and GPUs may be added at the end, or be leaving, and a
// vacant model may become another one. fresh lists the models that took the place of a vacant one. Engines of the others go on. Clock,
// Make, Changed and Warn stay as they are.
func (a *Agent) Reconfigure(c Config, fresh []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config.Models, a.config.GPUs, a.config.Leaving = c.Models, c.GPUs, c.Leaving
	a.config.HostMemory, a.config.Retry, a.config.Health, a.config.Victim = c.HostMemory, c.Retry, c.Health, c.Victim
	a.grow()
	for _, fn := range fresh {
		a.measured[fn] = measured{}
		for gpu := range a.at {
			a.at[gpu][fn] = &instance{gpu: gpu, fn: fn, state: Cold, began: map[int]float64{}}
		}
	}
	for _, row := range a.at {
		for _, i := range row {
			a.putAwayIfLeaving(i)
		}
	}
	a.makeHostRoom(nil)
	a.broadcast()
}

// putAwayIfLeaving stops an engine without requests whose model or GPU is leaving.
func (a *Agent) putAwayIfLeaving(i *instance) {
	// mutant: engines that leave
	if len(i.began) == 0 && (i.unload || a.config.Models[i.fn].Leaving || slices.Contains(a.config.Leaving, i.gpu)) {
		i.wanted, i.level = false, 0
		a.keep(i)
	}
}
