package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"medusa/agent"
	"medusa/dispatch"
	"medusa/schedule"
)

// Options are what a Spec does not say.
type Options struct {
	Make func(s *Spec, gpu, fn int) agent.Engine // nil: processes
	Log  *dispatch.Log                           // nil: none
	Out  io.Writer                               // the output of engines, and warnings
}

// Server answers requests.
type Server struct {
	spec      *Spec
	keys      map[string]bool
	functions map[string]int
	agent     *agent.Agent
	queue     *dispatch.Queue
	transport *http.Transport
	out       io.Writer
	count     counters
	home      *agent.Home // nil: none

	mu      sync.Mutex
	waiting []int // by model: requests without a turn
}

// New makes a Server. No engine is started before a request needs it.
func New(s *Spec, o Options) (*Server, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	clock := func() float64 { return time.Since(began).Seconds() }
	g := &Server{spec: s, keys: keys, functions: map[string]int{}, waiting: make([]int, len(s.Models)), out: &lines{w: o.Out},
		// Engines are on this machine: connections are cheap, and one that waits may belong to an engine that ends.
		transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second, DisableCompression: true}}
	if err := g.open(); err != nil {
		return nil, err
	}
	c := agent.Config{GPUs: len(s.GPUs), HostMemory: gigabytes(s.HostMemory), Clock: clock, Victim: victim(s.Policy.Name), Retry: seconds(s.Retry),
		Health: seconds(s.Health), Warn: g.warn, Changed: func() { g.queue.Changed() }}
	makeEngine := o.Make
	if makeEngine == nil {
		makeEngine = g.process
	}
	c.Make = func(gpu, fn int) agent.Engine { return makeEngine(s, gpu, fn) }
	for i, m := range s.Models {
		g.functions[m.Name] = i
		c.Models = append(c.Models, agent.Model{Name: m.Name, Memory: m.Memory, Slots: m.Slots, Sleep: m.Sleep, Asleep: m.Asleep,
			Host: gigabytes(m.HostGB), StartLimit: seconds(m.StartLimit), Start: m.Start, Wake: m.Wake, Service: m.Service})
	}
	if g.agent, err = agent.New(c); err != nil {
		return nil, err
	}
	g.queue, err = dispatch.NewQueue(dispatch.Config{Policy: s.Policy.Name, Params: s.params(), GPUs: len(s.GPUs)}, g.agent, clock, o.Log)
	if err != nil {
		return nil, err
	}
	g.count.init(s)
	return g, nil
}

// open ends what an earlier server left.
func (g *Server) open() error {
	if g.spec.State == "" {
		return nil
	}
	home, left, err := agent.OpenHome(g.spec.State)
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

// Close stops all engines, and returns when nothing of them is left.
func (g *Server) Close() {
	g.agent.Close()
	g.transport.CloseIdleConnections()
	if g.home != nil {
		_ = g.home.Close() // nothing was written
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
