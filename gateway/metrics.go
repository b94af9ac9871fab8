package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"medusa/agent"
)

// counters are what metrics cannot be asked of others for.
type counters struct {
	mu      sync.Mutex
	answers []map[int]int // by model and status
	turns   []int         // by model: requests that an engine got
	waits   []float64     // by model: seconds until then, all together
}

func (c *counters) init(s *Spec) {
	c.answers, c.turns, c.waits = make([]map[int]int, len(s.Models)), make([]int, len(s.Models)), make([]float64, len(s.Models))
	for i := range c.answers {
		c.answers[i] = map[int]int{}
	}
}

func (c *counters) answered(fn, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[fn][status]++
}

func (c *counters) waited(fn int, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns[fn]++
	c.waits[fn] += d.Seconds()
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// label quotes a label's value.
func label(value string) string { return `"` + escapes.Replace(value) + `"` }

// metrics writes the text format of Prometheus.
func (g *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	var out strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	names := make([]string, len(g.spec.Models))
	for i, m := range g.spec.Models {
		names[i] = label(m.Name)
	}
	g.count.mu.Lock()
	family("medusa_serve_requests_total", "counter", "Requests that ended, by status; 499: the client left.")
	for fn, name := range names {
		for _, status := range slices.Sorted(maps.Keys(g.count.answers[fn])) {
			fmt.Fprintf(&out, "medusa_serve_requests_total{model=%s,code=\"%d\"} %d\n", name, status, g.count.answers[fn][status])
		}
	}
	family("medusa_serve_wait_seconds", "summary", "Time from a request's arrival until an engine got it, a start included.")
	for fn, name := range names {
		fmt.Fprintf(&out, "medusa_serve_wait_seconds_sum{model=%s} %g\nmedusa_serve_wait_seconds_count{model=%s} %d\n",
			name, g.count.waits[fn], name, g.count.turns[fn])
	}
	g.count.mu.Unlock()
	family("medusa_serve_waiting", "gauge", "Requests without a turn.")
	g.mu.Lock()
	for fn, name := range names {
		fmt.Fprintf(&out, "medusa_serve_waiting{model=%s} %d\n", name, g.waiting[fn])
	}
	g.mu.Unlock()
	var states, running strings.Builder
	for gpu, id := range g.spec.GPUs {
		for fn, name := range names {
			now, requests := g.agent.State(gpu, fn)
			fmt.Fprintf(&running, "medusa_serve_running{model=%s,gpu=%s} %d\n", name, label(id), requests)
			for _, s := range agent.States() {
				is := 0
				if s == now {
					is = 1
				}
				fmt.Fprintf(&states, "medusa_serve_engine{model=%s,gpu=%s,state=%q} %d\n", name, label(id), s, is)
			}
		}
	}
	family("medusa_serve_running", "gauge", "Requests that have a turn.")
	out.WriteString(running.String())
	family("medusa_serve_engine", "gauge", "The state of a model's engine on a GPU.")
	out.WriteString(states.String())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(out.String()))
}
