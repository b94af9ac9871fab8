package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"medusa/internal/httplimit"
	"medusa/serving/agent"
	"medusa/serving/dispatch"
	"medusa/serving/schedule"
)

// Options are settings that are not in the file.
type Options struct {
	Make func(m *Model, gpu string) agent.Engine // nil: processes
	Log  *dispatch.Log                           // nil: none
	Out  io.Writer                               // the output of engines, and warnings
}

// Server answers requests.
type Server struct {
	machine
	queue    *dispatch.Queue
	bodies   *httplimit.Bodies
	access   access
	created  int64 // seconds since 1970
	count    counters
	history  history
	watchers atomic.Int32
	over     chan struct{} // closed when the server takes no more requests

	setup atomic.Pointer[setup] // replaced under mu

	mu      sync.Mutex
	using   []int // number of requests for a model, by its place
	waiting []int // those of them without a turn
}

// New makes a Server. No engine is started before a request needs it.
func New(s *Spec, o Options) (*Server, error) {
	g := &Server{machine: newMachine(s, o), over: make(chan struct{}), bodies: httplimit.NewBodies(s.MaxBodies), created: time.Now().Unix()}
	g.count.init()
	g.access.warn = g.warn
	now, err := firstSetup(s)
	if err != nil {
		return nil, err
	}
	g.setup.Store(now)
	g.using, g.waiting = make([]int, len(s.Models)), make([]int, len(s.Models))
	c := now.machines()
	c.Clock, c.Warn, c.Changed = g.clock, g.warn, func() { g.queue.Changed() }
	c.Entered = func(gpu, fn int, s agent.State) {
		now := g.setup.Load()
		at := g.clock()
		g.history.add(Change{At: at, GPU: now.gpus[gpu], Model: now.models[fn].Name, State: s})
		o.Log.Engine(at, gpu, fn, string(s))
	}
	c.Make = func(gpu, fn int) agent.Engine {
		now := g.setup.Load()
		return g.engine(now.models[fn], now.gpus[gpu])
	}
	if g.agent, err = agent.New(c); err != nil {
		return nil, err
	}
	if g.queue, err = dispatch.NewQueue(now.policy(), g.agent, g.clock, o.Log); err != nil {
		return nil, err
	}
	f, err := openAccess(s.AccessLog)
	if err != nil {
		return nil, err
	}
	g.access.use(f)
	return g, g.open(s.State)
}

func gigabytes(n float64) int64 { return int64(n * 1e9) }

// victim is the policy's choice of the engine that makes room.
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

// drainLimit bounds the time for present requests after the server was told to end.
const drainLimit = 60 * time.Second

// The bounds of connections. Clients behind a proxy have one address together.
const (
	maxConnections = 8192
	stall          = 10 * time.Second // for which a client may read nothing of an answer
	maxHeader      = 64 << 10
)

// protocols are HTTP/1 and, for clients that know it before, HTTP/2 without TLS.
func protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// Serve answers requests on a listener until ctx ends. It then takes no new ones, lets present ones end, and stops all engines.
func (g *Server) Serve(ctx context.Context, l net.Listener) error {
	limits := httplimit.Limits{Connections: maxConnections, Client: g.setup.Load().spec.MaxConnections, Stall: stall}
	h := &http.Server{Handler: g.Handler(), ReadHeaderTimeout: 30 * time.Second, ReadTimeout: 5 * time.Minute, IdleTimeout: 5 * time.Minute,
		MaxHeaderBytes: maxHeader, ConnContext: withLine, Protocols: protocols(),
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerConnection: 256 << 10, MaxReceiveBufferPerStream: 256 << 10}}
	h.RegisterOnShutdown(sync.OnceFunc(func() { close(g.over) }))
	g.preload()
	l = lined{httplimit.New(limits).Listen(l)}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		limit, cancel := context.WithTimeout(context.Background(), drainLimit)
		defer cancel()
		if h.Shutdown(limit) != nil {
			_ = h.Close() // requests that are left end with their connections
		}
		err = <-served
	}
	g.Close()
	g.access.use(nil)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
