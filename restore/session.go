package restore

import (
	"io"
	"slices"
	"time"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/check"
	"medusa/restore/digest"
	"medusa/restore/live"
	"medusa/restore/rebuild"
	"medusa/restore/status"
)

// Run is the purpose of this start of the engine (docs/architecture.md, "The runs of one medusa materialize").
type Run int

const (
	// None: Medusa is absent.
	None Run = contract.PurposeNone
	// Profile is the run profile: a native start with the profile forward.
	Profile Run = contract.PurposeProfile
	// Record is the run record-a or record-b: the KV size is given, KV cache before weights, warm-up and capture.
	Record Run = contract.PurposeRecord
	// Check is the run check-native: as Record; Ready then replays, hashes and ends the process.
	Check Run = contract.PurposeCheck
	// Restore is a start from an artifact, and the run check-restored, in which Ready verifies and ends the process.
	Restore Run = contract.PurposeRestore
)

// String names the run.
func (r Run) String() string {
	return [...]string{"none", "profile", "record", "check", "restore"}[r]
}

// Hooks are the engine's parts that the session needs. The zero value is ready for use.
type Hooks struct {
	Warn io.Writer // receives the one line about a native start; nil: os.Stderr
	// End ends the process (os.Exit). Another goroutine calls it if a replay in a check does not end, which no error can report. nil: such
	// a replay is waited for.
	End func(code int)
}

// Steps are functions that an engine can provide for a check of its graphs.
type Steps = check.Steps

// KernelFound says how this process came by a kernel that its restored graphs launch.
type KernelFound = rebuild.KernelFound

// Session is Medusa's side of one engine start.
type Session struct {
	env         environment
	end         func(code int)
	agreement   agreement
	source      source
	journal     journal
	steps       Steps
	collectives Collectives
	connect     func() error // after the calls of all graphs

	fallback *Fallback // why this start is native
	exit     *Exit     // the process is to end

	stated      bool   // Identify was called
	identified  bool   // the artifact is meant for this engine and device
	free, total uint64 // device memory at Identify
	elastic     bool   // Elastic was called
	least, room uint64 // bytes of the KV cache: with which the engine serves; for which there was room at Identify
	serving     bool   // past Ready

	restored  *rebuild.Graphs // set by Graphs
	rest      rest            // of the restored graphs
	earlier   *earlier        // memory before the phases that a restored start skips; check-native
	untouched []digest.Range  // memory that may stay unchanged, hashed before any replay; check-restored
	weights   string          // hash of the weights at that time
	peers     peers           // memory with results for which other ranks' data were stood in
}

// FromEnv reads the environment that docs/architecture.md lists. With MEDUSA_RUN unset the session's Run is None. It makes no driver call.
// It begins to read the artifact in the background; the first call that needs the artifact waits for it. If the artifact cannot be read,
// that is a fallback, not an error. An error means that the environment contradicts itself, or is an *Exit.
func FromEnv(h Hooks) (*Session, error) {
	env, err := readEnvironment()
	if err != nil {
		return nil, err
	}
	s := &Session{env: env, end: h.End, journal: journal{warn: h.Warn, path: env.Status, meeting: env.Rendezvous, timings: make(timings)}}
	s.agreement = agreement{dir: env.Rendezvous, rank: env.rank, wait: agreeWithin}
	if n := env.RankSeconds; n != 0 {
		s.agreement.wait = time.Duration(n) * time.Second
	}
	if !env.Began.IsZero() {
		s.journal.began, s.journal.phases = env.Began, []status.Phase{{Name: "import"}}
	}
	if env.run == Restore || env.run == Check {
		if f := s.open(); f != nil {
			_ = s.fall(f)
		}
	}
	if env.run == Restore && s.fallback == nil {
		s.agreement.come()
	}
	if s.exit != nil {
		return nil, s.exit
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
func (s *Session) Restoring() bool {
	return s.env.run == Restore && s.Fallback() == nil && s.exit == nil
}

// Phase notes that the engine enters a phase, for the stage times in the status. Call it beside medusa_mark_phase. In check-native, the first of
// warmup and capture hashes the engine's memory, with its work on the device done.
func (s *Session) Phase(name string) {
	if s.env.run != None || s.env.Status != "" {
		s.journal.phase(name)
	}
	// mutant: memory before the phases that a restored start skips
	if s.env.run == Check && s.earlier == nil && (name == "warmup" || name == "capture") {
		s.earlier = s.remember()
	}
}

// Weights is what a start does with its weights.
type Weights int

const (
	// AnyWeights: it loads them, and their contents do not count.
	AnyWeights Weights = contract.WeightsAny
	// OtherWeights: it loads other values of the same shapes, and states the factor model.checkpoint with any value.
	OtherWeights Weights = contract.WeightsOther
	// CountedWeights: it loads them, and states a digest of all their contents as the factor model.checkpoint.
	CountedWeights Weights = contract.WeightsCount
)

// Weights returns what this start does with its weights. Ask before Identify. An engine that does not ask states model.checkpoint in every start.
func (s *Session) Weights() Weights {
	s.opened()
	switch {
	case s.env.Weights == contract.ContentsOther:
		return OtherWeights
	case s.env.Weights == contract.ContentsCount || s.env.run == Restore && s.source.tied(s.env.Artifact, s.env.rank):
		return CountedWeights
	}
	return AnyWeights
}

// Provide gives the session the engine's functions for a check of its graphs. Call it before Graphs and Ready.
func (s *Session) Provide(steps Steps) { s.steps = steps }

// Collectives makes a call of the engine's communicator on a capturing stream.
type Collectives = rebuild.Collectives

// ProvideCollectives says how the engine makes the calls of its communicator that graphs hold. Call it before Graphs. All ranks make the same calls in the
// same order, while no graph has been replayed.
func (s *Session) ProvideCollectives(make Collectives) { s.collectives = make }

// ProvideConnect gives the session a step that finishes what the engine's communicators left for later in the calls of graphs. Call it before Graphs, on all ranks
// or on none. All ranks take the step at the same time, while no graph has been replayed.
func (s *Session) ProvideConnect(step func() error) { s.connect = step }

// KVBytes returns the size of the KV cache in bytes if it is known without a profile forward: from the run profile in
// recording runs, from the artifact's KV profile in a Restore run, after a check of the device's memory. given is false
// if the engine has to profile.
// The author of an unsigned artifact can choose any size, and a start that falls back later keeps the cache that it has. So the engine
// serves the right tokens from any size, or calls Refuse before it allocates and profiles.
func (s *Session) KVBytes() (bytes uint64, given bool) {
	switch {
	case s.env.run == Record || s.env.run == Check:
		return s.env.kvBytes, s.env.kvBytes != 0
	case !s.Restoring():
		return 0, false
	}
	defer s.journal.start("kv")()
	if !s.identified {
		_ = s.fall(&Fallback{Engine, errSizeUnidentified})
		return 0, false
	}
	return s.source.artifact.KV.KVBytes, true
}

// Elastic tells the session that the engine serves with any KV cache from a least number of bytes on, if the addresses of all of it are
// reserved. Then a start is restored if there is room for the least. A block has block bytes. Call it before Identify. An engine that does
// not know the sizes by then passes 0, which means those of the artifact, and calls it again once it knows them.
func (s *Session) Elastic(least, block uint64) {
	s.elastic, s.least = true, least
	live.MarkElastic(least, block)
}

// KVRoom returns, if KVBytes has given a size from an artifact, for how many of these bytes the device had room at Identify.
func (s *Session) KVRoom() (bytes uint64, known bool) { return s.room, s.Restoring() && s.identified }

// Workspace returns, if KVBytes has given a size, how many bytes the engine is to reserve for buffers that grow with a forward
// and stay: their size after the profile forward. Graphs that refer to a smaller one lose it when it grows.
func (s *Session) Workspace() uint64 {
	if s.Restoring() {
		return s.source.artifact.KV.Workspace
	}
	return s.env.workspace
}

// Note returns the engine's note under a name from the recording (medusa_mark_note). Call it after Graphs.
func (s *Session) Note(name string) (value []byte, ok bool) {
	if s.restored == nil {
		return nil, false
	}
	notes := s.restored.Memory.Spec.Notes
	i := slices.IndexFunc(notes, func(n graphir.Note) bool { return n.Name == name })
	if i < 0 {
		return nil, false
	}
	return notes[i].Value, true
}

// Tensor returns the address of a named tensor of the artifact in this process. A restored engine takes the addresses from it that
// it did not allocate itself: of tensors of the capture phase that it writes between replays. Call it after Graphs.
func (s *Session) Tensor(name string) (addr cuda.DevicePtr, ok bool) {
	if s.restored == nil {
		return 0, false
	}
	return s.restored.Memory.Tensor(name)
}

// Kernels lists the kernels of restored graphs in the order of the artifact's table. It is empty before Graphs and if no graph was restored.
func (s *Session) Kernels() []KernelFound {
	if s.restored == nil {
		return nil
	}
	return s.restored.Found
}

// Close destroys the restored graphs and frees their memory. No graph may be running. A process
// that is to end keeps them.
func (s *Session) Close() (err error) {
	defer s.caught(&err)
	if s.restored == nil || s.exit != nil {
		return nil
	}
	r := s.restored
	s.restored = nil
	return r.Destroy()
}

// recording reports whether the interposer writes a trace of this process.
func (s *Session) recording() bool {
	return s.env.run == Profile || s.env.run == Record || s.env.run == Check
}
