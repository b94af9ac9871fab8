package restore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"medusa/internal/cuda"
	"medusa/internal/printable"
	"medusa/restore/check"
	"medusa/restore/status"
)

// timings adds up the time of Medusa's own steps by name.
type timings map[string]time.Duration

// start begins a step; calling the result ends it.
func (t timings) start(name string) func() {
	began := time.Now()
	return func() { t[name] += time.Since(began) }
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// journal is the account of a start.
type journal struct {
	warn     io.Writer // nil: os.Stderr
	path     string    // of the status; empty: none
	meeting  string    // folder of the start's processes, for a status that may not be written to its path; empty: none
	timings  timings
	phases   []status.Phase
	began    time.Time // of the first phase
	triggers []status.Trigger
	hashing  check.Hashing
	reported bool

	otherWeights bool // than verification's: checks compared no results
}

// start begins a step; calling the result ends it.
func (j *journal) start(step string) (stop func()) { return j.timings.start(step) }

// phase notes that the engine enters a phase.
func (j *journal) phase(name string) {
	now := time.Now()
	if len(j.phases) == 0 {
		j.began = now
	}
	j.phases = append(j.phases, status.Phase{Name: name, Began: now.Sub(j.began).Seconds()})
}

// say writes a line to the engine's output. Reasons may quote an artifact's texts, so control characters are
// escaped.
func (j *journal) say(format string, args ...any) {
	w := j.warn
	if w == nil {
		w = os.Stderr
	}
	_, _ = printable.Fprintf(w, "medusa: "+format+"\n", args...)
}

// write writes the status object. Only the first one of a process counts, but a sticky error overrides it.
func (j *journal) write(st *status.Status) {
	if j.path == "" || (j.reported && st.Status != status.Sticky) {
		return
	}
	j.reported = true
	st.Spans, st.Triggers, st.Phases = make(map[string]float64), j.triggers, j.phases
	var sum time.Duration
	for name, d := range j.timings {
		sum += d
		st.Spans[name] = milliseconds(d)
	}
	st.Milliseconds = milliseconds(sum)
	st.Hashing, st.OtherWeights = j.hashing.Where, j.otherWeights
	if j.hashing.Why != nil {
		st.HostHashing = j.hashing.Why.Error()
	}
	err := status.Report(j.path, st)
	// mutant: engine that gave up its starter's privileges
	if errors.Is(err, fs.ErrPermission) && j.meeting != "" && status.Report(filepath.Join(j.meeting, status.Meeting), st) == nil {
		return
	}
	if err != nil {
		j.say("%v", err)
	}
}

// report writes the status object of a start.
func (s *Session) report(kind string, cause error) {
	if s.journal.path == "" {
		return
	}
	st := status.Status{Status: kind, Pool: s.env.Pooled}
	if s.env.Native != "" {
		st.Reason, st.Detail, _ = strings.Cut(s.env.Native, ": ")
	}
	if s.fallback != nil {
		st.Reason, cause = string(s.fallback.Code), s.fallback.Reason
		var peer *peerError
		st.Follows = errors.As(cause, &peer)
	}
	if cause != nil {
		st.Detail = cause.Error()
	}
	if r := s.env.rank; r.several() {
		st.Rank, st.Ranks = int(r.index), int(r.count)
	}
	st.Engine, st.Engines = int(s.env.Engine), int(s.env.Engines)
	if name, err := deviceName(); err == nil {
		st.Device = name
	}
	if free, total, err := cuda.MemInfo(); err == nil {
		st.Memory = &status.Memory{Free: free, Total: total}
		if s.restored != nil {
			v := &s.source.artifact.Verification
			st.Memory.VerifiedNative, st.Memory.VerifiedRestored = v.NativeFree, v.RestoredFree
		}
	}
	if s.restored != nil {
		s.restored.Describe(&st)
	}
	s.journal.write(&st)
}
