package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"medusa/serving/schedule"
)

// Model describes a model to the agent. Times are in seconds.
type Model struct {
	Name   string
	Memory float64 // share of a GPU's memory that an engine takes while it is awake
	Slots  int     // requests that an engine works on at a time

	Sleep  int     // level to which an engine is put asleep to make room; 0: it is stopped
	Asleep float64 // share of a GPU's memory that a sleeping engine keeps
	Host   int64   // bytes of host memory of an engine that sleeps at level 1, if it is not measured to hold more

	StartLimit time.Duration // how long a start, a wake-up or falling asleep may take

	// Estimates, used until they are measured.
	Start, Wake, Service float64

	Keep    bool    // its last engine does not make room for others
	Idle    float64 // seconds without a request after which an engine is stopped; 0: never
	Leaving bool    // its engines end with their last requests
}

// Config configures an Agent.
type Config struct {
	Models     []Model
	GPUs       int
	HostMemory int64 // bytes for engines that sleep at level 1
	Make       func(gpu, fn int) Engine
	// Victim is the policy's choice of the idle engine to put away. active is as in dispatch.Machines.
	Victim func(now float64, idle []schedule.Resident, active func(fn int) bool) int
	Clock  func() float64 // seconds, as the queue's
	// Changed is called, without a lock, when room was made and no request has ended.
	Changed func()
	Warn    func(format string, args ...any)
	// Entered is called with a lock held whenever a model's state on a GPU changes, so it must not call the agent. It may be nil.
	Entered func(gpu, fn int, s State)

	Retry  time.Duration // how long a model that has failed on a GPU is not started there again
	Health time.Duration // time between two health checks of an engine that is awake, and the limit for its answer

	Leaving []int // GPUs whose engines end with their last requests
}

// Agent owns the engines.
type Agent struct {
	config Config

	mu       sync.Mutex
	at       [][]*instance // GPU, model
	measured []measured    // by model
	changed  chan struct{} // closed at the next change
	closed   bool
	keepers  sync.WaitGroup
}

// instance is a model on a GPU.
type instance struct {
	gpu, fn  int
	state    State
	engine   Engine
	wanted   bool // a request was admitted since it was last put away
	level    int  // of the sleep that it is to have while it is not wanted; 0: none
	held     float64
	began    map[int]float64 // requests, by ID: when they were admitted
	lastUsed float64
	since    float64 // of the state
	failure  error
	retry    float64 // time
	kept     bool    // a keeper runs
	unload   bool    // it is stopped after its last request
	hurry    context.CancelFunc
}

// measured are running means, and the memory of the engine that was measured last: host memory asleep at level 1, and its shares of a GPU.
type measured struct {
	start, wake, service mean
	host                 int64
	awake, asleep        float64
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) { m.sum += x; m.n++ }

func (m *mean) or(unknown float64) float64 {
	if m.n == 0 {
		return unknown
	}
	return m.sum / float64(m.n)
}

// New makes an Agent. It starts no engine.
func New(c Config) (*Agent, error) {
	for _, m := range c.Models {
		if !(m.Memory > 0 && m.Memory <= 1) || !(m.Asleep >= 0 && m.Asleep < m.Memory) || m.Slots < 1 || m.Sleep < 0 || m.Sleep > 2 {
			return nil, fmt.Errorf("configure model %s: memory %v, asleep %v, %d slots, sleep level %d", m.Name, m.Memory, m.Asleep, m.Slots, m.Sleep)
		}
	}
	if c.GPUs < 1 {
		return nil, errors.New("configure agent: no GPU")
	}
	a := &Agent{config: c, changed: make(chan struct{})}
	a.grow()
	return a, nil
}

// grow makes a place for each model on each GPU.
func (a *Agent) grow() {
	for len(a.measured) < len(a.config.Models) {
		a.measured = append(a.measured, measured{})
	}
	for len(a.at) < a.config.GPUs {
		a.at = append(a.at, nil)
	}
	for gpu := range a.at {
		for fn := len(a.at[gpu]); fn < len(a.config.Models); fn++ {
			a.at[gpu] = append(a.at[gpu], &instance{gpu: gpu, fn: fn, state: Cold, began: map[int]float64{}})
		}
	}
}

// broadcast wakes all goroutines that wait for a change.
func (a *Agent) broadcast() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *Agent) enter(i *instance, s State) {
	i.state, i.since = s, a.config.Clock()
	if a.config.Entered != nil {
		a.config.Entered(i.gpu, i.fn, s)
	}
	a.broadcast()
}

// Address is the URL at which an engine answers, and the API key that it wants.
type Address struct{ URL, Key string }

// Acquire waits until the engine of an admitted request answers.
func (a *Agent) Acquire(ctx context.Context, d schedule.Decision) (at Address, err error) {
	for {
		a.mu.Lock()
		i, changed := a.at[d.GPU][d.Request.Fn], a.changed
		switch {
		case i.state == Awake:
			at = Address{i.engine.URL(), i.engine.Key()}
		case i.state == Failed:
			err = &EngineError{a.config.Models[i.fn].Name, i.gpu, i.failure}
		case a.closed:
			err = &EngineError{a.config.Models[i.fn].Name, i.gpu, errors.New("the server ends")}
		}
		a.mu.Unlock()
		if at.URL != "" || err != nil {
			return at, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Address{}, ctx.Err()
		}
	}
}

// Release ends a request that was admitted. service is its running time in seconds if it was answered, or 0.
func (a *Agent) Release(d schedule.Decision, service float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.at[d.GPU][d.Request.Fn]
	delete(i.began, d.Request.ID)
	i.lastUsed = a.config.Clock()
	if service > 0 {
		a.measured[i.fn].service.add(service)
	}
	a.putAwayIfLeaving(i)
	a.broadcast()
}

// Close stops all engines and waits for their ends.
func (a *Agent) Close() {
	a.mu.Lock()
	a.closed = true
	for _, row := range a.at {
		for _, i := range row {
			i.wanted, i.level = false, 0
			a.keep(i)
		}
	}
	a.broadcast()
	a.mu.Unlock()
	a.keepers.Wait()
}
