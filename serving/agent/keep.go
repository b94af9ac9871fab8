package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"medusa/serving/schedule"
)

// keep makes sure that a keeper brings i to its wanted state.
func (a *Agent) keep(i *instance) {
	// A start that no request waits for any more ends early, and its engine with it. If the engine was waking, it goes to sleep again.
	// mutant: engines that wake for nobody
	if i.hurry != nil && !i.wanted && (i.state == Starting || i.level == 0) {
		i.hurry()
	}
	if !i.kept && a.step(i) != nil {
		i.kept = true
		a.keepers.Go(func() { a.keeper(i) })
	}
}

// keeper takes steps until none is left. Only one keeper of an instance runs at a time.
func (a *Agent) keeper(i *instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		step := a.step(i)
		if step == nil {
			i.kept = false
			return
		}
		// mutant: memory that is still in use
		if i.wanted && !a.room(i) {
			// An engine may turn out to have more memory than was known when i got its place.
			// mutant: room that turns out too small
			a.makeRoom(i, func(int) bool { return false }, func(schedule.Resident) bool { return true })
			a.wait()
			continue
		}
		step(i)
		a.mu.Unlock()
		a.config.Changed()
		a.mu.Lock()
	}
}

// wait gives the lock to others until something changes.
func (a *Agent) wait() {
	changed := a.changed
	a.mu.Unlock()
	<-changed
	a.mu.Lock()
}

// room reports whether the memory that i needs is free by now.
func (a *Agent) room(i *instance) bool {
	return a.taken(i.gpu)-i.held+a.awake(i.fn) <= 1+slack
}

// step returns the next step of i towards its wanted state; nil if it has that state.
func (a *Agent) step(i *instance) func(*instance) {
	switch i.state {
	case Cold, Failed:
		if i.wanted {
			return a.start
		}
	case Awake:
		if !i.wanted && i.level > 0 {
			return a.sleep
		}
		if !i.wanted {
			return a.stop
		}
	case Asleep1, Asleep2:
		if i.wanted {
			return a.wake
		}
		if i.level == 0 {
			return a.stop
		}
	case Starting, Dozing, Waking, Evicted: // its keeper is at work
	}
	return nil
}

// errUnwanted ends a start that no request waits for any more.
var errUnwanted = errors.New("nobody waits for it any more")

// attempt calls an engine without the lock, within the model's limit. It ends early if i is not wanted any more.
func (a *Agent) attempt(i *instance, call func(ctx context.Context) error) (took float64, err error) {
	limit := a.config.Models[i.fn].StartLimit
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	i.hurry = cancel
	began := a.config.Clock()
	a.mu.Unlock()
	err = call(ctx)
	a.mu.Lock()
	i.hurry = nil
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it was not ready within %v: %w", limit, err)
	case ctx.Err() != nil:
		err = errUnwanted
	}
	return a.config.Clock() - began, err
}

func (a *Agent) start(i *instance) {
	e := a.config.Make(i.gpu, i.fn)
	i.engine, i.held, i.unload = e, a.awake(i.fn), false
	a.enter(i, Starting)
	took, err := a.attempt(i, e.Start)
	if err != nil {
		a.fail(i, err)
		return
	}
	a.measured[i.fn].start.add(took)
	a.enter(i, Awake)
	a.keepers.Go(func() { a.watch(i, e) })
	a.weigh(i)
}

// weigh measures an engine that is awake, while it answers.
func (a *Agent) weigh(i *instance) {
	e := i.engine
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), weighLimit)
	defer cancel()
	share := e.DeviceMemory(ctx)
	a.mu.Lock()
	if share > 0 && i.engine == e {
		if share > a.awake(i.fn)+notable {
			a.config.Warn("engine of %s on GPU %d has %.2f of its memory, the configuration says %g", a.config.Models[i.fn].Name, i.gpu, share, a.config.Models[i.fn].Memory)
		}
		a.measured[i.fn].awake = share
		i.held = a.awake(i.fn)
		a.broadcast()
	}
}

// weighLimit bounds the time in which an engine is measured: it cannot be put away meanwhile.
const weighLimit = 20 * time.Second

// notable is the share of a GPU's memory by which an engine has to exceed the known share for a warning.
const notable = 0.01

func (a *Agent) sleep(i *instance) {
	level := i.level
	a.enter(i, Dozing)
	held, share := int64(0), 0.0
	fall := func(ctx context.Context) error {
		err := i.engine.Sleep(ctx, level)
		if err == nil && level == 1 {
			held = i.engine.HostMemory()
		}
		if err == nil {
			share = i.engine.DeviceMemory(ctx)
		}
		return err
	}
	if _, err := a.attempt(i, fall); err != nil {
		a.fail(i, fmt.Errorf("put it asleep: %w", err))
		return
	}
	a.measured[i.fn].asleep = share
	i.held = a.asleep(i.fn)
	if level == 1 {
		a.measured[i.fn].host = held
		a.enter(i, Asleep1)
		a.makeHostRoom(nil)
	} else {
		a.enter(i, Asleep2)
	}
}

func (a *Agent) wake(i *instance) {
	i.held = a.awake(i.fn)
	a.enter(i, Waking)
	took, err := a.attempt(i, i.engine.Wake)
	if err != nil {
		a.fail(i, fmt.Errorf("wake it: %w", err))
		return
	}
	a.measured[i.fn].wake.add(took)
	a.enter(i, Awake)
	a.weigh(i)
}

func (a *Agent) stop(i *instance) {
	a.enter(i, Evicted)
	a.end(i)
	a.enter(i, Cold)
}

// end stops the engine of i. i forgets the engine first, so that its end does not count as a failure.
func (a *Agent) end(i *instance) {
	e := i.engine
	i.engine = nil
	a.mu.Unlock()
	e.Stop()
	a.mu.Lock()
	i.held = 0
}

// fail ends an engine that has failed.
func (a *Agent) fail(i *instance, cause error) {
	a.end(i)
	if errors.Is(cause, errUnwanted) {
		a.enter(i, Cold)
		return
	}
	a.failed(i, cause)
}

// failed enters the state Failed after the engine of an instance is gone. Its requests get the cause. No engine is started before Retry has passed,
// and then only for another request.
func (a *Agent) failed(i *instance, cause error) {
	name := a.config.Models[i.fn].Name
	// mutant: causes of failures
	i.failure, i.wanted, i.level = a.Failed(name, i.gpu, cause).Cause, false, 0
	i.retry = a.config.Clock() + a.config.Retry.Seconds()
	a.enter(i, Failed)
}

// Doubt checks the health of an engine that has not answered a request. If the engine is not healthy, it has ended when Doubt returns.
func (a *Agent) Doubt(d schedule.Decision) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.at[d.GPU][d.Request.Fn]
	e := i.engine
	if i.state != Awake {
		return false
	}
	limit := a.config.Health
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	well := e.Healthy(ctx) == nil
	if !well {
		e.Stop()
	}
	a.mu.Lock()
	for !well && i.engine == e { // until watch has noticed
		a.wait()
	}
	return well
}

// unanswered is the number of health checks in a row that an engine may miss before it is ended.
const unanswered = 2

// watch notices that an engine has ended or does not answer any more.
func (a *Agent) watch(i *instance, e Engine) {
	missed := 0
	for {
		a.mu.Lock()
		every, model := a.config.Health, a.config.Models[i.fn].Name
		a.mu.Unlock()
		look := time.NewTimer(every)
		select {
		case <-e.Ended():
			look.Stop()
			a.mu.Lock()
			for i.engine == e && i.hurry != nil {
				a.wait() // for its keeper, which may notice it first
			}
			if i.engine == e {
				i.engine, i.held = nil, 0
				a.failed(i, fmt.Errorf("it has ended: %w", e.Err()))
			}
			a.mu.Unlock()
			a.config.Changed()
			return
		case <-look.C:
			a.mu.Lock()
			awake := i.engine == e && i.state == Awake
			if i.engine == e {
				a.expire(i)
			}
			a.mu.Unlock()
			if !awake {
				missed = 0
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), every)
			err := e.Healthy(ctx)
			cancel()
			if missed++; err == nil {
				missed = 0
			}
			if missed == unanswered {
				a.config.Warn("end engine of %s on GPU %d: it does not answer: %v", model, i.gpu, err)
				e.Stop()
			}
		}
	}
}
