package dispatch

import (
	"fmt"
	"slices"

	"medusa/serving/schedule"
)

// Config selects a policy for a number of GPUs.
type Config struct {
	Policy string          `json:"policy"`
	Params schedule.Params `json:"params"`
	GPUs   int             `json:"gpus"`

	// Facts that only a server knows, for readers of its log. No decision depends on them.
	Models []Model `json:"models,omitempty"`  // by function
	HostGB float64 `json:"host_gb,omitempty"` // host memory for engines that sleep
}

// Core makes decisions. After each call but Next the caller calls Next until it declines, and carries out each decision before the
// next call, so that the view shows it. Times never fall. One goroutine at a time may use a Core.
type Core struct {
	policy  schedule.Policy
	queues  schedule.Anticipator // nil if the policy has no such methods
	view    schedule.Cluster
	gone    []bool // GPUs
	running map[int]schedule.Decision
	log     *Log
}

// New makes a Core. view is asked during Next only. log may be nil.
func New(c Config, view schedule.Cluster, log *Log) (*Core, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	policy, err := schedule.New(c.Policy, c.Params)
	if err != nil {
		return nil, err
	}
	d := &Core{policy: policy, gone: make([]bool, c.GPUs), running: map[int]schedule.Decision{}, log: log}
	d.queues, _ = policy.(schedule.Anticipator)
	d.view = log.begin(c, view)
	return d, nil
}

// check compares the topology with the number of GPUs. Policies do not know that number before they decide.
func (c *Config) check() error {
	bad := func(what string) error { return fmt.Errorf("configure policy %s: %s", c.Policy, what) }
	if c.GPUs < 1 {
		return bad("needs at least one GPU")
	}
	for _, row := range c.Params.Topology.NVLink {
		if len(row) != c.GPUs {
			return bad(fmt.Sprintf("a row of the NVLink table has %d entries for %d GPUs", len(row), c.GPUs))
		}
	}
	for _, g := range c.Params.Topology.Neighbour {
		if g >= c.GPUs {
			return bad(fmt.Sprintf("GPU %d is a neighbour, the last one is %d", g, c.GPUs-1))
		}
	}
	return nil
}

// Arrive queues a request. Its ID was never used before.
func (d *Core) Arrive(now float64, r schedule.Request) {
	d.log.write(&line{At: now, Arrive: &request{r.ID, r.Fn}})
	d.policy.Arrive(now, r)
}

// Cancel removes the request of a client that has left, and reports whether it was still waiting.
func (d *Core) Cancel(now float64, r schedule.Request) bool {
	waiting := d.policy.Cancel(r)
	d.log.write(&line{At: now, Cancel: &canceled{request{r.ID, r.Fn}, waiting}})
	return waiting
}

// Next returns the next decision, or reports that no request can start now.
func (d *Core) Next(now float64) (schedule.Decision, bool) {
	next, ok := d.policy.Next(now, d.view)
	d.log.decided(now, next, ok)
	if ok {
		d.running[next.Request.ID] = next
	}
	return next, ok
}

// Done accounts for a request that has run: service, latency and deadline as in [schedule.Completion]. It reports whether the request was running:
// one that was lost before is not.
func (d *Core) Done(now float64, id int, service, latency, deadline float64) bool {
	r, ok := d.running[id]
	if !ok {
		return false
	}
	delete(d.running, id)
	c := schedule.Completion{Request: r.Request, GPU: r.GPU, Service: service, Latency: latency, Deadline: deadline}
	d.log.write(&line{At: now, Done: &done{request{id, r.Request.Fn}, r.GPU, service, latency, deadline}})
	d.policy.Done(now, c)
	return true
}

// Lost accounts for a request whose engine has died, and reports whether it was running.
func (d *Core) Lost(now float64, id int) bool {
	r, ok := d.running[id]
	if !ok {
		return false
	}
	delete(d.running, id)
	d.log.write(&line{At: now, Lost: &lost{request{id, r.Request.Fn}, r.GPU}})
	d.policy.Lost(now, r.Request, r.GPU)
	return true
}

// LoseGPU takes a GPU away: no decision names it until ReturnGPU. The requests that ran there are lost. It returns them by ID.
func (d *Core) LoseGPU(now float64, gpu int) []schedule.Request {
	var ran []schedule.Request
	for _, r := range d.running {
		if r.GPU == gpu {
			ran = append(ran, r.Request)
		}
	}
	slices.SortFunc(ran, func(a, b schedule.Request) int { return a.ID - b.ID })
	for _, r := range ran {
		d.Lost(now, r.ID)
	}
	d.leave(now, gpu)
	return ran
}

func (d *Core) leave(now float64, gpu int) {
	d.log.write(&line{At: now, Gone: &gpu})
	if _, is := d.view.(lossy); !is {
		d.view = lossy{d.view, d.gone}
	}
	// mutant: a lost GPU
	d.gone[gpu] = true
	if b, ok := d.policy.(schedule.Binder); ok {
		// mutant: requests bound to a lost GPU
		b.Leave(gpu)
	}
}

// ReturnGPU gives a lost GPU back. No request of this Core runs there.
func (d *Core) ReturnGPU(now float64, gpu int) {
	d.log.write(&line{At: now, Back: &gpu})
	// mutant: a GPU that is back
	d.gone[gpu] = false
	if b, ok := d.policy.(schedule.Binder); ok {
		b.Return(gpu)
	}
	if r, ok := d.policy.(schedule.Rounds); ok {
		r.Again()
	}
}

// Freed reports a free place whose request this Core did not decide.
func (d *Core) Freed(now float64) {
	// mutant: places that an earlier configuration leaves
	if r, ok := d.policy.(schedule.Rounds); ok {
		d.log.write(&line{At: now, Freed: true})
		r.Again()
	}
}

// Queued returns the number of requests that wait for a decision.
func (d *Core) Queued() int { return d.policy.Queued() }

// Running returns the number of requests that were decided, and are neither done nor lost.
func (d *Core) Running() int { return len(d.running) }

// Active reports whether fn's worker is worth keeping ([schedule.Anticipator]). It is false if the policy is no Anticipator.
func (d *Core) Active(now float64, fn int) bool {
	if d.queues == nil {
		return false
	}
	is := d.queues.Active(now, fn)
	// The answer is an input, too: asking a policy may end a function's time of grace.
	d.log.write(&line{At: now, Active: &activity{fn, is}})
	return is
}

// Woken lists the functions whose memory is worth prefetching since the last call ([schedule.Anticipator]).
func (d *Core) Woken() []int {
	if d.queues == nil {
		return nil
	}
	return d.queues.Woken()
}
