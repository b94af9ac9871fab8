package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"medusa/agent"
	"medusa/dispatch"
	"medusa/schedule"
)

// Options are settings that are not in the file.
type Options struct {
	Make func(m *Model, gpu string) agent.Engine // nil: processes
	Log  *dispatch.Log                           // nil: none
	Out  io.Writer                               // the output of engines, and warnings
}

// Server answers requests.
type Server struct {
	make      func(m *Model, gpu string) agent.Engine
	agent     *agent.Agent
	queue     *dispatch.Queue
	transport *http.Transport
	out       io.Writer
	count     counters
	history   history
	watchers  atomic.Int32
	clock     func() float64 // seconds since the start
	over      chan struct{}  // closed when the server takes no more requests
	home      *agent.Home    // nil: none

	setup atomic.Pointer[setup] // is replaced under mu

	mu      sync.Mutex
	using   []int // requests that know a model, by its place
	waiting []int // those of them without a turn
}

// New makes a Server. No engine is started before a request needs it.
func New(s *Spec, o Options) (*Server, error) {
	began := time.Now()
	clock := func() float64 { return time.Since(began).Seconds() }
	g := &Server{make: o.Make, out: &lines{w: o.Out}, clock: clock, over: make(chan struct{}),
		// Engines are on this machine: connections are cheap, and one that waits may belong to an engine that ends.
		transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second, DisableCompression: true}}
	if g.make == nil {
		g.make = g.process
	}
	g.count.init()
	now, err := firstSetup(s)
	if err != nil {
		return nil, err
	}
	g.setup.Store(now)
	g.using, g.waiting = make([]int, len(s.Models)), make([]int, len(s.Models))
	c := now.machines()
	c.Clock, c.Warn, c.Changed = clock, g.warn, func() { g.queue.Changed() }
	c.Entered = func(gpu, fn int, s agent.State) {
		now := g.setup.Load()
		at := clock()
		g.history.add(Change{At: at, GPU: now.gpus[gpu], Model: now.models[fn].Name, State: s})
		o.Log.Engine(at, gpu, fn, string(s))
	}
	c.Make = func(gpu, fn int) agent.Engine {
		now := g.setup.Load()
		return g.make(now.models[fn], now.gpus[gpu])
	}
	if g.agent, err = agent.New(c); err != nil {
		return nil, err
	}
	if g.queue, err = dispatch.NewQueue(now.policy(), g.agent, clock, o.Log); err != nil {
		return nil, err
	}
	return g, g.open(s.State)
}

// open ends engines that an earlier server left.
func (g *Server) open(state string) error {
	if state == "" {
		return nil
	}
	home, left, err := agent.OpenHome(state)
	if left > 0 {
		g.warn("ended %d processes of engines that an earlier server had left", left)
	}
	g.home = home
	return err
}

func gigabytes(n float64) int64 { return int64(n * 1e9) }

// victim is the policy's way to choose who makes room.
func victim(policy string) func(now float64, idle []schedule.Resident, active func(int) bool) int {
	return func(now float64, idle []schedule.Resident, active func(int) bool) int {
		var e schedule.Evictor = schedule.LRU{Global: true}
		switch policy {
		case "mqfq":
			e = schedule.Sticky{Active: func(_ float64, fn int) bool { return active(fn) }}
		case "torpor", "torpor-fifo", "torpor-random":
			e = schedule.HeavyLight{}
		}
		return e.Victim(now, idle)
	}
}

func (g *Server) warn(format string, args ...any) {
	fmt.Fprintf(g.out, "medusa: "+format+"\n", args...)
}

// drainLimit bounds the time that requests have to end after the server was told to.
const drainLimit = 60 * time.Second

// Serve answers requests on a listener until ctx ends. It then takes no new ones, lets those that it has end, and stops all engines.
func (g *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: g.Handler(), ReadHeaderTimeout: 30 * time.Second, ReadTimeout: 5 * time.Minute}
	h.RegisterOnShutdown(sync.OnceFunc(func() { close(g.over) }))
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		limit, cancel := context.WithTimeout(context.Background(), drainLimit)
		defer cancel()
		if h.Shutdown(limit) != nil {
			_ = h.Close() // clients that are left end with their connections
		}
		err = <-served
	}
	g.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close stops all engines, and returns when no process of them is left.
func (g *Server) Close() {
	g.agent.Close()
	g.transport.CloseIdleConnections()
	if g.home != nil {
		_ = g.home.Close() // no data was written
	}
}

// lines lets many goroutines write.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
