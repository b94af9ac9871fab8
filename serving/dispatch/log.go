package dispatch

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"sync"

	"medusa/serving/schedule"
)

// formatVersion is the version of the log format.
// Version 2 has models and engines.
const formatVersion = 2

// line is a line of a log: a run's configuration, or one call of a Core. Times are in seconds.
type line struct {
	Version int       `json:"medusa_decisions,omitempty"` // with Run
	Run     *Config   `json:"run,omitempty"`
	At      float64   `json:"t"`
	Arrive  *request  `json:"arrive,omitempty"`
	Cancel  *canceled `json:"cancel,omitempty"`
	Next    *next     `json:"next,omitempty"`
	Done    *done     `json:"done,omitempty"`
	Lost    *lost     `json:"lost,omitempty"`
	Gone    *int      `json:"gone,omitempty"` // GPU
	Back    *int      `json:"back,omitempty"` // GPU
	Active  *activity `json:"active,omitempty"`
	Freed   bool      `json:"freed,omitempty"`
	Engine  *entered  `json:"engine,omitempty"`
}

type request struct {
	ID int `json:"id"`
	Fn int `json:"fn"`
}

type canceled struct {
	request
	Waiting bool `json:"waiting"`
}

// next is the answer of one call: a decision, or none. Seen are the view's answers that have changed since the line before.
type next struct {
	Seen    []string `json:"seen,omitempty"`
	Decided *decided `json:"decided,omitempty"`
}

type decided struct {
	request
	GPU  int `json:"gpu"`
	Peer int `json:"peer"`
}

type done struct {
	request
	GPU      int     `json:"gpu"`
	Service  float64 `json:"service_s"`
	Latency  float64 `json:"latency_s"`
	Deadline float64 `json:"deadline_s,omitempty"`
}

type lost struct {
	request
	GPU int `json:"gpu"`
}

// entered is the state that a model's engine on a GPU has entered. It is no call: its time may lie before the time of the line
// above.
type entered struct {
	GPU   int    `json:"gpu"`
	Fn    int    `json:"fn"`
	State string `json:"state"`
}

type activity struct {
	Fn int  `json:"fn"`
	Is bool `json:"is"`
}

// Log is written line by line, as JSON. It may hold several runs, one after the other. A nil Log writes no lines.
type Log struct {
	seen *recorder // of the Core that writes

	mu  sync.Mutex // a server may close the log while clients are left
	out *bufio.Writer
	err error // the first; the decisions go on without the log
}

// NewLog returns a log that is written to w.
func NewLog(w io.Writer) *Log { return &Log{out: bufio.NewWriter(w)} }

// Close writes the buffered lines, and returns the first error. It does not close the writer below.
func (l *Log) Close() error {
	l.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	if err == nil {
		l.err = os.ErrClosed // for later lines
	}
	return err
}

// Flush writes the buffered lines.
func (l *Log) Flush() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.out.Flush()
	}
}

// begin starts a run, and returns the view for the policy.
func (l *Log) begin(c Config, view schedule.Cluster) schedule.Cluster {
	if l == nil {
		return view
	}
	l.write(&line{Version: formatVersion, Run: &c})
	l.seen = &recorder{Cluster: view, last: map[asked]float64{}}
	return l.seen
}

// Engine records that a model's engine on a GPU has entered a state.
func (l *Log) Engine(now float64, gpu, fn int, state string) {
	l.write(&line{At: now, Engine: &entered{gpu, fn, state}})
}

func (l *Log) write(x *line) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	data, err := json.Marshal(x)
	if err == nil {
		_, err = l.out.Write(append(data, '\n'))
	}
	l.err = err
}

func (l *Log) decided(now float64, d schedule.Decision, ok bool) {
	if l == nil {
		return
	}
	n := next{Seen: l.seen.changed}
	if ok {
		n.Decided = &decided{request{d.Request.ID, d.Request.Fn}, d.GPU, d.Peer}
	}
	l.write(&line{At: now, Next: &n})
	l.seen.changed = l.seen.changed[:0]
}
