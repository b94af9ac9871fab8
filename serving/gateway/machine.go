package gateway

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"medusa/serving/agent"
)

// machine is the common part of a Server and a Node: their engines, and the HTTP transport to them.
type machine struct {
	make      func(m *Model, gpu string) agent.Engine
	agent     *agent.Agent
	transport *http.Transport
	out       io.Writer
	clock     func() float64 // seconds since the start
	home      *agent.Home    // nil: none
	starts    *starts
}

func newMachine(s *Spec, o Options) machine {
	began := time.Now()
	m := machine{make: o.Make, out: &lines{w: o.Out}, starts: &starts{}, clock: func() float64 { return time.Since(began).Seconds() },
		// Engines are on this machine: connections are cheap, and an idle one may belong to an engine that ends.
		transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second, DisableCompression: true}}
	if m.make == nil {
		if _, err := agent.NewMeter(s.GPUs[0]); err != nil {
			m.warn("the memory of GPUs is not measured: %v", err)
		}
	}
	return m
}

// engine makes the engine of a model on a GPU.
func (g *machine) engine(m *Model, gpu string) agent.Engine {
	if g.make != nil {
		return &counted{g.make(m, gpu), m.Name, gpu, "", g.starts}
	}
	status := ""
	if m.Artifact != "" {
		status = statusFile()
	}
	return &counted{g.process(m, gpu, status), m.Name, gpu, status, g.starts}
}

// open ends the engines that an earlier server left.
func (g *machine) open(state string) error {
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

func (g *machine) warn(format string, args ...any) {
	fmt.Fprintf(g.out, "medusa: "+format+"\n", args...)
}

// Close stops all engines, and returns when no process of them is left.
func (g *machine) Close() {
	g.agent.Close()
	g.transport.CloseIdleConnections()
	if g.home != nil {
		_ = g.home.Close() // no data was written
	}
}

// lines lets many goroutines write to w.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
