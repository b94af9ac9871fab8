package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"medusa/serving/agent"
)

// counters are the metrics that no other part keeps, by model. A name stays over a reload, so that a counter never
// falls.
type counters struct {
	mu      sync.Mutex
	answers map[string]map[int]int // by status
	turns   map[string]int         // requests that got an engine
	waits   map[string]float64     // sum of the seconds until then
	inTime  map[string]int         // answers within their deadlines
	late    map[string]int         // answers after them
}

func (c *counters) init() {
	c.answers, c.turns, c.waits = map[string]map[int]int{}, map[string]int{}, map[string]float64{}
	c.inTime, c.late = map[string]int{}, map[string]int{}
}

func (c *counters) answered(model string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[model] == nil {
		c.answers[model] = map[int]int{}
	}
	c.answers[model][status]++
}

func (c *counters) waited(model string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns[model]++
	c.waits[model] += d.Seconds()
}

// judged counts an answer that came after some seconds. within is its deadline in seconds; 0: none.
func (c *counters) judged(model string, after, within float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case within == 0:
	case after <= within:
		c.inTime[model]++
	default:
		c.late[model]++
	}
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// label quotes a label's value.
func label(value string) string { return `"` + escapes.Replace(value) + `"` }

// metrics writes the text format of Prometheus.
func (g *Server) metrics(w http.ResponseWriter, r *http.Request) {
	var out strings.Builder
	ours := map[string]bool{}
	family := func(name, kind, help string) {
		ours[name] = true
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	g.count.mu.Lock()
	family("medusa_serve_requests_total", "counter", "Requests that ended, by status; 499: the client left.")
	for _, name := range slices.Sorted(maps.Keys(g.count.answers)) {
		for _, status := range slices.Sorted(maps.Keys(g.count.answers[name])) {
			fmt.Fprintf(&out, "medusa_serve_requests_total{model=%s,code=\"%d\"} %d\n", label(name), status, g.count.answers[name][status])
		}
	}
	family("medusa_serve_wait_seconds", "summary", "Time from a request's arrival until an engine got it, a start included.")
	for _, name := range slices.Sorted(maps.Keys(g.count.turns)) {
		fmt.Fprintf(&out, "medusa_serve_wait_seconds_sum{model=%s} %g\nmedusa_serve_wait_seconds_count{model=%s} %d\n",
			label(name), g.count.waits[name], label(name), g.count.turns[name])
	}
	family("medusa_serve_deadlines_total", "counter", "Answers to requests with a deadline, by whether they met it.")
	for _, met := range []struct {
		is     bool
		counts map[string]int
	}{{true, g.count.inTime}, {false, g.count.late}} {
		for _, name := range slices.Sorted(maps.Keys(met.counts)) {
			fmt.Fprintf(&out, "medusa_serve_deadlines_total{model=%s,met=\"%t\"} %d\n", label(name), met.is, met.counts[name])
		}
	}
	g.count.mu.Unlock()
	family("medusa_serve_engine_changes_total", "counter", "How often engines of a model came into a state, on all GPUs together.")
	for _, e := range g.history.counts() {
		fmt.Fprintf(&out, "medusa_serve_engine_changes_total{model=%s,state=%q} %d\n", label(e.model), e.state, e.n)
	}
	g.starts.write(&out, family)
	family("medusa_serve_waiting", "gauge", "Requests without a turn.")
	var states, running, hosts, shares strings.Builder
	g.mu.Lock()
	now := g.setup.Load()
	for _, m := range now.spec.Models {
		place, name := now.functions[m.Name], label(m.Name)
		fmt.Fprintf(&out, "medusa_serve_waiting{model=%s} %d\n", name, g.waiting[place])
		fmt.Fprintf(&hosts, "medusa_serve_host_bytes{model=%s} %d\n", name, g.agent.Host(place))
		for gpu, id := range now.gpus {
			at := g.agent.Standing(gpu, place)
			fmt.Fprintf(&shares, "medusa_serve_gpu_share{model=%s,gpu=%s} %g\n", name, label(id), at.Memory)
			fmt.Fprintf(&running, "medusa_serve_running{model=%s,gpu=%s} %d\n", name, label(id), at.Requests)
			for _, s := range agent.States() {
				is := 0
				if s == at.State {
					is = 1
				}
				fmt.Fprintf(&states, "medusa_serve_engine{model=%s,gpu=%s,state=%q} %d\n", name, label(id), s, is)
			}
		}
	}
	g.mu.Unlock()
	family("medusa_serve_running", "gauge", "Requests that have a turn.")
	out.WriteString(running.String())
	family("medusa_serve_engine", "gauge", "The state of a model's engine on a GPU.")
	out.WriteString(states.String())
	family("medusa_serve_host_bytes", "gauge", "Host memory of an engine that sleeps at level 1: host_gb, or what one was measured to hold if that is more.")
	out.WriteString(hosts.String())
	family("medusa_serve_gpu_share", "gauge", "Share of a GPU's memory that an engine has: as the file says, or as measured if that is more.")
	out.WriteString(shares.String())
	family("go_goroutines", "gauge", "Goroutines of the server.")
	fmt.Fprintf(&out, "go_goroutines %d\n", runtime.NumGoroutine())
	engines := g.scrape(r.Context())
	family("medusa_serve_engine_metrics", "gauge", "1 if an engine that answers gave metrics of its own, which follow.")
	for _, e := range engines {
		has := 0
		if e.families != nil {
			has = 1
		}
		fmt.Fprintf(&out, "medusa_serve_engine_metrics{model=%s,gpu=%s} %d\n", label(e.model), label(e.gpu), has)
	}
	merge(&out, engines, func(name string) bool { return ours[name] })
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(out.String()))
}

// metrics are those of an agent: its picker has those of requests.
func (n *Node) metrics(w http.ResponseWriter, _ *http.Request) {
	var out strings.Builder
	n.starts.write(&out, func(name, kind, help string) {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	})
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(out.String()))
}
