package agent

// Unload stops the engines of a model. One with requests is stopped after the last of them. It returns their number.
func (a *Agent) Unload(fn int) (engines int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, row := range a.at {
		if i := row[fn]; i.engine != nil || i.wanted {
			engines++
			i.unload = true
			a.putAwayIfLeaving(i)
		}
	}
	return engines
}

// Preload starts an engine of a model that has none, on the first GPU that has room without another engine making it. It reports whether the model has
// an engine now.
func (a *Agent) Preload(fn int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var place *instance
	for gpu, row := range a.at {
		i := row[fn]
		if i.wanted {
			return true
		}
		if place == nil && i.state == Cold && a.promised(gpu)+a.awake(fn) <= 1+slack {
			place = i
		}
	}
	if place == nil || a.closed {
		return false
	}
	place.wanted, place.lastUsed = true, a.config.Clock()
	a.keep(place)
	return true
}

// expire stops an engine that has had no request for the time that its model says.
func (a *Agent) expire(i *instance) {
	idle := a.config.Models[i.fn].Idle
	// mutant: engines that nobody has asked for long
	if idle > 0 && len(i.began) == 0 && (i.state == Awake || i.state == Asleep1 || i.state == Asleep2) && a.config.Clock()-i.lastUsed > idle {
		i.wanted, i.level = false, 0
		a.keep(i)
	}
}
