package extproc

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Counters counts the answers, turns and waiting times of a picker.
type Counters struct {
	mu      sync.Mutex
	answers map[answer]int
	turns   map[string]int
	waits   map[string]float64
	by      map[string]int // answers by endpoint, if the data plane names it
}

type answer struct {
	model  string
	status int
}

// NewCounters makes counters at 0.
func NewCounters() *Counters {
	return &Counters{answers: map[answer]int{}, turns: map[string]int{}, waits: map[string]float64{}, by: map[string]int{}}
}

func (c *Counters) answered(model string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[answer{model, status}]++
}

func (c *Counters) waited(model string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns[model]++
	c.waits[model] += d.Seconds()
}

func (c *Counters) served(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[endpoint]++
}

// Left forgets the answers of an endpoint that has left: addresses of pods come and go without end.
func (c *Counters) Left(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, endpoint)
}

// Write writes the counters in Prometheus' text format.
func (c *Counters) Write(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprint(w, "# HELP medusa_picker_requests_total Requests that ended, by status; 499: the client left.\n# TYPE medusa_picker_requests_total counter\n")
	for _, a := range slices.SortedFunc(maps.Keys(c.answers), func(a, b answer) int {
		if a.model != b.model {
			if a.model < b.model {
				return -1
			}
			return 1
		}
		return a.status - b.status
	}) {
		fmt.Fprintf(w, "medusa_picker_requests_total{model=%q,code=\"%d\"} %d\n", a.model, a.status, c.answers[a])
	}
	fmt.Fprint(w, "# HELP medusa_picker_wait_seconds Time from a request's arrival until its turn.\n# TYPE medusa_picker_wait_seconds summary\n")
	for _, m := range slices.Sorted(maps.Keys(c.turns)) {
		fmt.Fprintf(w, "medusa_picker_wait_seconds_sum{model=%q} %g\nmedusa_picker_wait_seconds_count{model=%q} %d\n", m, c.waits[m], m, c.turns[m])
	}
	fmt.Fprint(w, "# HELP medusa_picker_served_total Answers by the endpoint that served, if the data plane says which.\n# TYPE medusa_picker_served_total counter\n")
	for _, e := range slices.Sorted(maps.Keys(c.by)) {
		fmt.Fprintf(w, "medusa_picker_served_total{endpoint=%q} %d\n", e, c.by[e])
	}
}
