package restore

import (
	"os"
	"strings"
	"time"

	"medusa/internal/cuda"
	"medusa/internal/printable"
	"medusa/status"
)

// timings adds up the time of Medusa's own steps by name.
type timings map[string]time.Duration

// start begins a step; calling the result ends it.
func (t timings) start(name string) func() {
	began := time.Now()
	return func() { t[name] += time.Since(began) }
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// say writes a line for whoever reads the engine's output. Reasons may quote an artifact's texts: they are text.
func (s *Session) say(format string, args ...any) {
	w := s.warn
	if w == nil {
		w = os.Stderr
	}
	_, _ = printable.Fprintf(w, "medusa: "+format+"\n", args...)
}

// report writes the status object. Only the first report of a process counts, but a sticky error overrides it.
func (s *Session) report(kind string, cause error) {
	if s.env.Status == "" || (s.reported && kind != status.Sticky) {
		return
	}
	s.reported = true
	st := status.Status{Status: kind, Spans: make(map[string]float64), Triggers: s.triggers, Phases: s.phases}
	var sum time.Duration
	for name, d := range s.timings {
		sum += d
		st.Spans[name] = milliseconds(d)
	}
	st.Milliseconds = milliseconds(sum)
	if s.env.Native != "" {
		st.Reason, st.Detail, _ = strings.Cut(s.env.Native, ": ")
	}
	if s.fallback != nil {
		st.Reason, cause = string(s.fallback.Code), s.fallback.Reason
	}
	if cause != nil {
		st.Detail = cause.Error()
	}
	if r := s.env.rank; r.several() {
		st.Rank, st.Ranks = int(r.index), int(r.count)
	}
	if name, err := deviceName(); err == nil {
		st.Device = name
	}
	if free, total, err := cuda.MemInfo(); err == nil {
		st.Memory = &status.Memory{Free: free, Total: total}
		if s.restored != nil {
			v := &s.artifact.Verification
			st.Memory.VerifiedNative, st.Memory.VerifiedRestored = v.NativeFree, v.RestoredFree
		}
	}
	st.Hashing = s.hashing.where
	if s.hashing.why != nil {
		st.HostHashing = s.hashing.why.Error()
	}
	if r := s.restored; r != nil {
		st.Reloaded = len(r.reloaded)
		st.Addresses, st.Relocated = status.Relocated, r.addresses.why
		if r.addresses.exact {
			st.Addresses = status.Exact
		}
		st.Graphs, st.Templates, st.Kernels, st.Allocations = len(r.execs), r.templates, r.kernels, len(r.memory.owned)
		st.Found = map[string]int{}
		for _, k := range r.found {
			st.Found[k.How]++
		}
		for i := range s.spec.Graphs {
			st.Nodes += s.spec.Nodes(i)
		}
	}
	if err := status.Write(s.env.Status, &st); err != nil {
		s.say("%v", err)
	}
}

// failed ends the process if a restored graph may have broken the device context for good.
func (s *Session) failed(err error) error {
	if s.restored != nil && cuda.Sticky(err) {
		s.end(err)
	}
	return err
}

// end leaves a process whose context can do no further work: only a new one can start natively.
func (s *Session) end(cause error) {
	s.say("only a new process can start: %v", cause)
	s.report(status.Sticky, cause)
	os.Exit(status.ExitSticky)
}

// endAll leaves a process whose rank would be alone in starting natively: the others serve restored graphs already.
func (s *Session) endAll(cause error) {
	s.say("rank %d cannot use graphs that all ranks have restored: %v", s.env.rank.index, cause)
	s.report(status.Sticky, cause)
	os.Exit(status.ExitSticky)
}
