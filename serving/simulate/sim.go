package simulate

import (
	"math"

	"medusa/serving/dispatch"
	"medusa/serving/schedule"
)

// request is one invocation and its result.
type request struct {
	arrival float64
	start   float64 // it began to run, after its cold start
	first   float64 // first token, or the answer if it has no tokens
	end     float64
	service float64 // fixed service time; 0: the profile's
	fn      int32
	prompt  int32
	output  int32
	kind    startKind
	done    bool
	stray   bool // its worker was started although another GPU had one
}

// startKind is the kind of start that a request had to wait for.
type startKind uint8

const (
	warm     startKind = iota
	fromHost           // weights copied from host memory
	fromPeer           // or from another GPU
	cold
)

// function is the state of one deployed model.
type function struct {
	Function
	profile       *profile
	engine        *engine
	decode        float64
	decodeRequest float64
	own           observedLoad  // cold start with the scenario's strategy and a local artifact
	native        *observedLoad // without the artifact, if the strategy needs one
	bytes         int64         // on the device
	class         int
	lastUsed      float64
	busy          float64 // GPU seconds of service
	loading       float64 // GPU seconds of loading
	served        int
	serviceSum    float64
	workers       []*worker
	held          float64 // GPU seconds during which workers, idle or not, existed
}

type gpu struct {
	node        int
	workers     []*worker
	used        int64
	pinned      int // workers that cannot be evicted now, and their memory
	pinnedBytes int64
	active      int     // requests with fixed service times that run now
	flying      int     // requests admitted and not finished
	copying     float64 // end of the current use of the host link
	traffic     schedule.Traffic
}

// container is a worker's place in host memory. It outlives the worker's stay on a GPU.
type container struct {
	fn       int
	gpu      int // GPU of the sleeping engine that it belongs to, with Sleepers
	lastUsed float64
	worker   *worker
}

type node struct {
	containers []*container
	artifacts  store
	weights    store
	link       float64 // end of the current use of the link to the stores
}

// decider is the part of [dispatch.Core] that a simulation without failures needs.
type decider interface {
	Arrive(now float64, r schedule.Request)
	Next(now float64) (schedule.Decision, bool)
	Done(now float64, id int, service, latency, deadline float64) bool
	Active(now float64, fn int) bool
	Woken() []int
}

type sim struct {
	spec     *ClusterSpec
	core     decider
	evictor  schedule.Evictor
	fns      []function
	gpus     []gpu
	nodes    []node
	requests []request
	agenda   agenda
	now      float64
	open     int   // requests not yet finished
	memory   int64 // of a GPU; 0: no limit
	workers  int   // alive
	watching bool
	progress func(done int)
	finished int
	scratch  []schedule.Resident
	picked   []*worker
}

// newSim prepares a run. decisions is the log of its decisions, or nil.
func newSim(sc *Scenario, requests []request, seed uint64, decisions *dispatch.Log) (*sim, error) {
	deployed := sc.deployed()
	s := &sim{spec: &sc.Cluster, requests: requests, open: len(requests), memory: gigabytes(sc.Cluster.GPUMemoryGB)}
	core, err := dispatch.New(dispatch.Config{Policy: sc.Policy.Name, Params: sc.params(deployed, seed), GPUs: sc.Cluster.Nodes * sc.Cluster.GPUs}, s, decisions)
	if err != nil {
		return nil, err
	}
	s.core = core
	switch sc.Cluster.Eviction {
	case "global-lru":
		s.evictor = schedule.LRU{Global: true}
	case "heavy-light":
		s.evictor = schedule.HeavyLight{}
	case "sticky":
		s.evictor = schedule.Sticky{Active: s.core.Active}
	default:
		s.evictor = schedule.LRU{}
	}
	for _, f := range deployed {
		fn, err := newFunction(sc, f)
		if err != nil {
			return nil, err
		}
		s.fns = append(s.fns, fn)
	}
	s.nodes = make([]node, sc.Cluster.Nodes)
	for i := range s.nodes {
		n := &s.nodes[i]
		n.artifacts.limit, n.weights.limit = sc.Cluster.ArtifactGB, sc.Cluster.WeightGB
		if i < len(sc.Cluster.Prebaked) {
			for _, m := range sc.Cluster.Prebaked[i] {
				n.artifacts.entries = append(n.artifacts.entries, entry{model: m, gb: sc.profiles.Models[m].ArtifactGB, pinned: true})
			}
		}
	}
	s.gpus = make([]gpu, sc.Cluster.Nodes*sc.Cluster.GPUs)
	for i := range s.gpus {
		s.gpus[i].node = i / sc.Cluster.GPUs
	}
	return s, nil
}

// gigabytes converts to whole bytes, so that sums are exact.
func gigabytes(gb float64) int64 { return int64(math.Round(gb * 1e9)) }

func newFunction(sc *Scenario, f Function) (function, error) {
	p := sc.profiles.Models[f.Model]
	fn := function{Function: f, profile: &p, engine: p.Engine, bytes: gigabytes(p.MemoryGB), class: map[string]int{"medium": 1, "heavy": 2}[p.Class]}
	own, err := startTimes(sc, &p, sc.Strategy)
	if err != nil {
		return fn, err
	}
	fn.own = own
	if sc.Strategy == restoredStart || sc.Strategy == kvOnlyStart {
		// A profile may lack the native start. Then the artifact is used at any cost.
		if native, err := startTimes(sc, &p, nativeStart); err == nil {
			fn.native = &native
		} else {
			fn.native = &observedLoad{First: math.Inf(1), Later: math.Inf(1)}
		}
	}
	if p.Engine != nil {
		fn.decode, fn.decodeRequest = p.Engine.Decode, p.Engine.DecodeRequest
		if sc.Strategy == noGraphsStart {
			fn.decode, fn.decodeRequest = p.Engine.EagerDecode, p.Engine.EagerDecodeRequest
		}
	}
	return fn, nil
}

// startTimes returns the observed times if the scenario wants them and the profile has them, and otherwise the sum of the stages.
func startTimes(sc *Scenario, p *profile, st Strategy) (observedLoad, error) {
	if o, ok := p.Observed[st]; ok && sc.Cluster.Observed {
		return o, nil
	}
	t, err := p.load(st, sc.Cluster.Prestarted)
	return observedLoad{First: t, Later: t}, err
}

// run processes all events. Requests must be in order of arrival.
func (s *sim) run() {
	next := 0
	for next < len(s.requests) || len(s.agenda.heap) > 0 {
		if next < len(s.requests) && (len(s.agenda.heap) == 0 || s.requests[next].arrival <= s.agenda.heap[0].at) {
			s.now = s.requests[next].arrival
			s.core.Arrive(s.now, schedule.Request{ID: next, Fn: int(s.requests[next].fn)})
			next++
			s.prefetch()
		} else {
			e := s.agenda.pop()
			s.now = e.at
			s.handle(e)
		}
		for {
			d, ok := s.core.Next(s.now)
			if !ok {
				break
			}
			s.admit(d)
		}
		if s.open == 0 {
			return
		}
	}
}

// watch starts the observer, which checks the workers at multiples of its period while workers exist.
func (s *sim) watch() {
	if s.spec.ObserveEvery > 0 && !s.watching {
		s.watching = true
		at := (math.Floor(s.now/s.spec.ObserveEvery) + 1) * s.spec.ObserveEvery
		s.agenda.push(event{at: at, kind: observed})
	}
}

func (s *sim) handle(e event) {
	w := e.worker
	switch e.kind {
	case observed:
		s.observe()
	case loaded:
		w.state = serving
		w.lastUsed = s.now
		s.settle(w)
		if w.source != nil {
			w.source.locks--
			s.settle(w.source)
			w.source = nil
		}
		if w.inFlight == 0 {
			s.rest(w) // prefetched
			return
		}
		s.wake(w)
	case stepped:
		if w.phase.busy && e.gen == w.gen {
			s.endPhase(w)
		}
	case finished:
		s.gpus[w.gpu].active--
		s.requests[e.req].first = s.now
		s.finish(w, e.req)
		if w.inFlight == 0 {
			s.rest(w)
		}
	case expired:
		if w.gen == e.gen && w.idle() {
			s.remove(w, true)
		}
	}
}

// admit carries out a decision.
func (s *sim) admit(d schedule.Decision) {
	r := &s.requests[d.Request.ID]
	w := s.free(d.GPU, d.Request.Fn)
	if w == nil {
		r.stray = len(s.fns[d.Request.Fn].workers) > 0
		w, r.kind = s.begin(d.GPU, d.Request.Fn, d.Peer)
	}
	w.inFlight++
	w.seen++
	s.settle(w)
	w.lastUsed = s.now
	w.gen += b2u(s.fns[w.fn].engine == nil)
	s.fns[w.fn].lastUsed = s.now
	s.gpus[d.GPU].flying++
	w.waiting = append(w.waiting, int32(d.Request.ID))
	if w.state != loading {
		s.wake(w)
	}
}

// b2u voids the keep-alive event of a worker without an engine. Such a worker has no phases to count.
func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// finish removes a request from its worker.
func (s *sim) finish(w *worker, req int32) {
	r := &s.requests[req]
	r.end = s.now
	r.done = true
	w.inFlight--
	w.lastUsed = s.now
	s.settle(w)
	if w.home != nil {
		w.home.lastUsed = s.now
	}
	if s.spec.ObserveEvery == 0 {
		w.seen--
	}
	f := &s.fns[w.fn]
	f.lastUsed = s.now
	f.served++
	f.serviceSum += r.end - r.start
	s.gpus[w.gpu].flying--
	s.open--
	s.finished++
	if s.progress != nil && s.finished%1024 == 0 {
		s.progress(s.finished)
	}
	s.core.Done(s.now, int(req), r.end-r.start, r.first-r.arrival, 0)
}

// rest is called when a worker has no more work.
func (s *sim) rest(w *worker) {
	switch {
	case w.state != serving:
	case s.spec.IdleExit && s.spec.ObserveEvery > 0:
		w.state = exiting
		s.settle(w)
	case s.spec.IdleExit:
		s.remove(w, true)
	case s.spec.Keepalive > 0:
		w.gen++
		s.agenda.push(event{at: s.now + s.spec.Keepalive, kind: expired, worker: w, gen: w.gen})
	}
}

// observe is one check of the harness on its workers: it sees completed requests and exited workers. A worker without work is
// told to stop at the first check, and its GPU is free at the next.
func (s *sim) observe() {
	for g := range s.gpus {
		ws := s.gpus[g].workers
		for i := len(ws) - 1; i >= 0; i-- {
			w := ws[i]
			w.seen = w.inFlight
			switch {
			case w.state == exiting:
				w.state = stopping
			case w.state == stopping && w.inFlight == 0:
				s.remove(w, true)
			}
		}
	}
	s.watching = s.workers > 0
	if s.watching {
		s.agenda.push(event{at: s.now + s.spec.ObserveEvery, kind: observed})
	}
}
