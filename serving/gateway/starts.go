package gateway

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"medusa/restore/status"
	"medusa/serving/agent"
)

// Start is how an engine's start went. Status is restored, native (with the reason), failed, or unknown if the engine did not say.
type Start struct {
	Status  string  `json:"status"`
	Reason  string  `json:"reason,omitempty"`
	Detail  string  `json:"detail,omitempty"`
	Seconds float64 `json:"seconds"` // until the engine answered
}

// The values of Start that package status does not have.
const (
	failedStart  = "failed"
	unknownStart = "unknown"
	noArtifact   = "no_artifact" // the reason of a native start that nobody wanted restored
)

// starts counts the starts of a machine's engines. A name stays over a reload, so that a counter never falls.
type starts struct {
	mu     sync.Mutex
	counts map[startKind]startSum
	last   map[[2]string]Start // by model and GPU
}

type startKind struct{ model, status, reason string }

type startSum struct {
	n       int
	seconds float64
}

func (s *starts) add(model, gpu string, start Start) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts, s.last = map[startKind]startSum{}, map[[2]string]Start{}
	}
	kind := startKind{model, start.Status, start.Reason}
	sum := s.counts[kind]
	s.counts[kind] = startSum{sum.n + 1, sum.seconds + start.Seconds}
	s.last[[2]string{model, gpu}] = start
}

// of is the last start of a model on a GPU, or nil.
func (s *starts) of(model, gpu string) *Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	if start, ok := s.last[[2]string{model, gpu}]; ok {
		return &start
	}
	return nil
}

// write writes the two families in the text format of Prometheus.
func (s *starts) write(out *strings.Builder, family func(name, kind, help string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := slices.SortedFunc(maps.Keys(s.counts), func(a, b startKind) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.status, b.status), cmp.Compare(a.reason, b.reason))
	})
	labels := func(k startKind) string {
		return fmt.Sprintf("{model=%s,status=%s,reason=%s}", label(k.model), label(k.status), label(k.reason))
	}
	family("medusa_serve_starts_total", "counter", "Starts of engines by how they went: restored, native with its reason, failed, or unknown.")
	for _, k := range kinds {
		fmt.Fprintf(out, "medusa_serve_starts_total%s %d\n", labels(k), s.counts[k].n)
	}
	family("medusa_serve_start_seconds", "summary", "Time from the start of an engine's command until it answered or failed.")
	for _, k := range kinds {
		fmt.Fprintf(out, "medusa_serve_start_seconds_sum%s %g\nmedusa_serve_start_seconds_count%s %d\n", labels(k), s.counts[k].seconds, labels(k), s.counts[k].n)
	}
}

// counted is an engine whose start is counted.
type counted struct {
	agent.Engine
	model, gpu string
	status     string // the file with the engine's own account; empty: it has no artifact
	starts     *starts
}

// Start implements [agent.Engine].
func (c *counted) Start(ctx context.Context) error {
	began := time.Now()
	err := c.Engine.Start(ctx)
	if err != nil && ctx.Err() != nil && context.Cause(ctx) == context.Canceled {
		c.tidy()
		return err // nobody waited for it any more
	}
	start := c.went(err)
	start.Seconds = time.Since(began).Seconds()
	c.starts.add(c.model, c.gpu, start)
	if err != nil {
		c.tidy()
	}
	return err
}

func (c *counted) went(err error) Start {
	if err != nil {
		return Start{Status: failedStart, Detail: err.Error()}
	}
	if c.status == "" {
		return Start{Status: status.Native, Reason: noArtifact}
	}
	st, err := status.Read(c.status)
	if err != nil {
		return Start{Status: unknownStart}
	}
	return Start{Status: st.Status, Reason: st.Reason, Detail: st.Detail}
}

// Stop implements [agent.Engine].
func (c *counted) Stop() {
	c.Engine.Stop()
	c.tidy()
}

func (c *counted) tidy() {
	if c.status != "" {
		_ = os.RemoveAll(filepath.Dir(c.status))
	}
}

// statusFile is a file for an engine's account of its start, in a folder of its own. It is empty if there can be none.
func statusFile() string {
	dir, err := os.MkdirTemp("", "medusa-start-")
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "status.json")
}
