package restore

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/status"
)

// Run is the purpose of this start of the engine (docs/architecture.md, "The runs of one medusa materialize").
type Run int

const (
	// None: Medusa is absent.
	None Run = contract.PurposeNone
	// Profile is run 0: a native start with the profile forward.
	Profile Run = contract.PurposeProfile
	// Record is run A or B: the KV size is given, KV cache before weights, warm-up and capture.
	Record Run = contract.PurposeRecord
	// Check is run N: as Record; Ready then replays, hashes and exits.
	Check Run = contract.PurposeCheck
	// Restore is a start from an artifact, and run V, in which Ready verifies and exits.
	Restore Run = contract.PurposeRestore
)

// String names the run.
func (r Run) String() string {
	return [...]string{"none", "profile", "record", "check", "restore"}[r]
}

// Hooks are the engine's parts that the session needs. The zero value is ready for use.
type Hooks struct {
	Warn io.Writer // receives the one line about a native start; nil: os.Stderr
}

// Session is Medusa's side of one engine start.
type Session struct {
	env         environment
	agreement   agreement
	warn        io.Writer
	artifact    *artifacts.Artifact
	token       string // which artifact: the same in all ranks
	spec        *graphir.Spec
	fallback    *Fallback
	restored    *restoration   // set by Graphs
	earlier     *earlier       // memory before the phases that a restored start skips; run N
	untouched   []digest.Range // memory that may stay unchanged, hashed before any replay; run V
	hashing     hashing
	steps       Steps
	places      map[string]tensorPlace
	byName      map[string]int    // of the artifact's tensors
	recorded    map[uint32]uint32 // recorded index of this process's allocations; nil: the same
	triggers    []status.Trigger
	phases      []status.Phase
	began       time.Time // of the first phase
	timings     timings
	stated      bool   // Identify was called
	identified  bool   // the artifact is meant for this engine and device
	free, total uint64 // device memory at Identify
	serving     bool   // past Ready
	reported    bool
	reading     chan read // the artifact is on its way; nil: it is there, or will not come
}

// FromEnv reads the environment that docs/architecture.md lists. With MEDUSA_RUN unset the session's Run is None.
// It makes no driver call. The artifact is read meanwhile, until something of it is asked for. One that cannot be read is a
// fallback, not an error; an error means that the environment contradicts itself.
func FromEnv(h Hooks) (*Session, error) {
	env, err := readEnvironment()
	if err != nil {
		return nil, err
	}
	s := &Session{env: env, warn: h.Warn, timings: make(timings)}
	s.agreement = agreement{dir: env.Rendezvous, rank: env.rank, wait: agreeWithin}
	if !env.Began.IsZero() {
		s.began, s.phases = env.Began, []status.Phase{{Name: "import"}}
	}
	if env.run == Restore || env.run == Check {
		s.open()
	}
	return s, nil
}

// Run returns the purpose of this start. It does not change when a restore falls back: see Fallback.
func (s *Session) Run() Run { return s.env.run }

// Fallback returns why a Restore run goes on as a native start, or nil while it does not.
func (s *Session) Fallback() *Fallback {
	s.opened()
	return s.fallback
}

// Restoring reports whether this start still is to be served by restored graphs.
func (s *Session) Restoring() bool { return s.env.run == Restore && s.Fallback() == nil }

// Phase notes that the engine enters a phase, for the stage times in the status. Call it beside medusa_mark_phase. In run N, the first of
// warmup and capture hashes the engine's memory, with its work on the device done.
func (s *Session) Phase(name string) {
	if s.env.run == None && s.env.Status == "" {
		return
	}
	now := time.Now()
	if len(s.phases) == 0 {
		s.began = now
	}
	s.phases = append(s.phases, status.Phase{Name: name, Began: now.Sub(s.began).Seconds()})
	// mutant: memory before the phases that a restored start skips
	if s.env.run == Check && s.earlier == nil && (name == "warmup" || name == "capture") {
		s.earlier = s.remember()
	}
}

// Identify states the factors of the artifact's validity: the engine's factors (engine version, model configuration and
// checkpoint digest, arguments), to which the session adds those of the device. Recording runs note them; in a Restore
// run they are compared with the artifact's. It needs the engine's context to be current, and comes before the engine
// allocates anything: the memory that is free now decides whether the KV profile holds.
// A mismatch is returned as a *Fallback with code Incompatible whose reason lists every differing factor; the engine
// may ignore it and start natively.
func (s *Session) Identify(factors artifacts.Identity) error {
	return s.Guard(func() error { return s.identify(factors) })
}

// KVBytes returns the size of the KV cache in bytes if it is known without a profile forward: from run 0 in
// recording runs, from the artifact's KV profile in a Restore run, after a check of the device's memory. given is false
// if the engine has to profile.
// An artifact without a signature says anything that its author likes, and a start that falls back later keeps the cache that it has. So
// the engine serves the right tokens from any size, or calls Refuse before it allocates and profiles.
func (s *Session) KVBytes() (bytes uint64, given bool) { return s.kvBytes() }

// Workspace returns, if KVBytes has given a size, how many bytes the engine is to reserve for buffers that grow with a forward
// and stay: their size after the profile forward. Graphs that refer to a smaller one lose it when it grows.
func (s *Session) Workspace() uint64 { return s.workspace() }

// Triggers returns the batch sizes at which the engine is to run its first layer eagerly through Trigger, so that every
// hidden module is loaded (paper §5.2). Empty unless the session is Restoring.
func (s *Session) Triggers() []int64 {
	if !s.Restoring() {
		return nil
	}
	var batches []int64
	for _, t := range s.spec.Triggers {
		batches = append(batches, t.Batch)
	}
	return batches
}

// Trigger runs one triggering layer: launches made by run on this thread lead to the modules of their kernels, and its
// allocations stay out of the allocation sequence. Call it once per batch size of Triggers, in that order.
// An error of run is returned as a *Fallback.
func (s *Session) Trigger(run func() error) error {
	return s.Guard(func() error { return s.trigger(run) })
}

// Graphs restores every graph of the artifact and returns them in the order in which they were captured, uploaded and ready to
// launch.
// Any error is a *Fallback; nothing that was made stays behind, and the engine is to warm up and capture natively.
// Call it in the phase "capture", on the engine's thread.
func (s *Session) Graphs() (graphs []*Graph, err error) {
	s.opened()
	err = s.Guard(func() error {
		graphs, err = s.graphs()
		return err
	})
	return graphs, err
}

// Note returns the engine's note under a name from the recording (medusa_mark_note). Call it after Graphs.
func (s *Session) Note(name string) (value []byte, ok bool) {
	if s.restored == nil {
		return nil, false
	}
	i := slices.IndexFunc(s.spec.Notes, func(n graphir.Note) bool { return n.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.spec.Notes[i].Value, true
}

// Ready ends the start: the status object is written, and in runs N and V selfTest is served, the graphs are replayed
// and hashed, and the process exits. selfTest returns the engine's tokens for its fixed prompts; it may be nil.
// Call it after the mark "ready".
func (s *Session) Ready(selfTest func() ([]byte, error)) error {
	s.opened()
	return s.Guard(func() error { return s.ready(selfTest) })
}

// Failed tells the session about a driver error that the engine met after ready. If it is sticky and graphs were
// restored, the status says so and the process exits with status.ExitSticky, for the supervising parent to start the engine
// natively; any other error is returned as it came.
func (s *Session) Failed(err error) error { return s.failed(err) }

// Refuse states that the engine takes no part in this start's purpose, or cannot use the graphs of Graphs. A recording
// run ends with the exit code of an incompatible engine; a Restore run gives everything back and goes on natively.
func (s *Session) Refuse(cause error) error {
	return s.Guard(func() error { return s.refuse(cause) })
}

// Close destroys the restored graphs and frees their memory. No graph may be running.
func (s *Session) Close() error {
	if s.restored == nil {
		return nil
	}
	r := s.restored
	s.restored = nil
	return s.Guard(func() error { return inTrigger(r.destroy) })
}

// recording reports whether the interposer writes a trace of this process.
func (s *Session) recording() bool {
	return s.env.run == Profile || s.env.run == Record || s.env.run == Check
}

// fall records the first reason to start natively and returns it. Under MEDUSA_STRICT, in a verifying run, and if the
// device context is lost or the engine's memory is, it ends the process instead.
func (s *Session) fall(f *Fallback) *Fallback {
	if s.fallback != nil {
		return s.fallback
	}
	if s.env.run == Restore {
		s.agreement.fall(f)
	}
	var spoilt *spoiltError
	// mutant: new process if the context is lost or memory spoilt
	if cuda.Sticky(f.Reason) || errors.As(f.Reason, &spoilt) {
		s.end(f.Reason)
	}
	s.fallback = f
	if s.env.Strict || s.env.verifying() {
		s.say("cannot restore: %v (this start may not go on natively, so the process ends)", f)
		s.report(status.Native, nil)
		os.Exit(f.Code.exit())
	}
	// mutant: escapes in the engine's lines
	s.say("native start: %v", f)
	return f
}
