package agent

// Standing is the status of a model on a GPU, for display.
type Standing struct {
	State    State
	Since    float64 // when it came into the state, by the agent's clock
	Requests int     // that were admitted to it
	Memory   float64 // share of the GPU's memory that it has now
	Wanted   bool    // it is awake or becomes so, and was not put away since
	LastUsed float64 // when its last request began or ended
	Delay    float64 // seconds until it could serve
	Failure  error   // of a failed one
	Retry    float64 // when a failed one may start again
}

// Standing returns the status of a model on a GPU.
func (a *Agent) Standing(gpu, fn int) Standing {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.at[gpu][fn]
	s := Standing{State: i.state, Since: i.since, Requests: len(i.began), Memory: i.held, Wanted: i.wanted, LastUsed: i.lastUsed, Delay: a.delay(i)}
	if i.state == Failed {
		s.Failure, s.Retry = i.failure, i.retry
	}
	return s
}

// Endpoint is the address of an engine that is asleep or awake.
type Endpoint struct {
	GPU, Fn int
	Address
}

// Endpoints lists the addresses of all engines that are asleep or awake.
func (a *Agent) Endpoints() (list []Endpoint) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, row := range a.at {
		for _, i := range row {
			if i.state == Awake || i.state == Asleep1 || i.state == Asleep2 {
				list = append(list, Endpoint{i.gpu, i.fn, Address{i.engine.URL(), i.engine.Key()}})
			}
		}
	}
	return list
}

// Estimates are the seconds that a model's start, its wake-up and an answer take. They are means of measurements, or
// configured values if there are none.
type Estimates struct{ Start, Wake, Service float64 }

// Estimates returns the estimates of a model.
func (a *Agent) Estimates(fn int) Estimates {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, measured := &a.config.Models[fn], &a.measured[fn]
	return Estimates{measured.start.or(m.Start), measured.wake.or(m.Wake), measured.service.or(m.Service)}
}

// Obstacle is the reason why a request of a model cannot run on a GPU.
type Obstacle string

// The obstacles.
const (
	Turn   Obstacle = "turn"   // only the policy: others come first
	Full   Obstacle = "full"   // its engine there has as many requests as it takes
	Room   Obstacle = "room"   // engines with requests, and kept ones, leave too little memory
	Broken Obstacle = "failed" // it has failed there, and may not start again yet
)

// Obstacle returns the reason why a request of a model cannot run on a GPU now.
func (a *Agent) Obstacle(gpu, fn int) Obstacle {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.obstacle(gpu, fn)
}

func (a *Agent) obstacle(gpu, fn int) Obstacle {
	switch i := a.at[gpu][fn]; {
	case i.wanted && len(i.began) >= a.config.Models[fn].Slots:
		return Full
	case i.wanted && a.crowded(i):
		return Room
	case i.wanted:
		return Turn
	case a.failing(i):
		return Broken
	case !a.fits(gpu, fn):
		return Room
	}
	return Turn
}
