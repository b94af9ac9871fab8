package materialize

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/private"
	"medusa/internal/spill"
	"medusa/kvprofile"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
)

// Options are the settings of Run and Verify.
type Options struct {
	Output  string            // the artifact; it appears under this name only once it is verified
	Argv    []string          // the engine's command, unchanged
	Library string            // libmedusa_interpose.so
	Relax   artifacts.Relaxed // Verify: differences that are allowed
	Log     io.Writer         // receives the engine's output of every run; may be nil
	Traces  string            // keep the traces and the engine's output in this directory of this user's alone; empty: they go
	Until   string            // end after this step (Untils), with no artifact; empty: make one
	Resume  bool              // take the traces that Traces has from an earlier series of the same command
	// Contents makes the engine of Identify state the contents of its weights.
	Contents contract.Contents
	Alone    int // so many ranks, each on this machine's GPU without the others; 0: the command starts all of its ranks
	// Communicator is the device memory in bytes that a rank's communicator takes, which is not seen if Alone.
	Communicator uint64
	Now          time.Time
	Dirs         []Dir // directories to bundle, besides the JIT compilers' caches (artifacts/bundled.Caches)
	// EmbedImages takes the images of late modules along even if a shared object holds them.
	EmbedImages bool
	// Step is told about each run before it starts: its number, how many there are, and its purpose.
	Step func(i, n int, what string)
	// Note is told news for the user that are no errors.
	Note func(text string)
}

// The runs of a materialization (docs/architecture.md): their traces and files have these names.
const (
	runProfile       = "profile"
	runRecordA       = "record-a"
	runRecordB       = "record-b"
	runCheckNative   = "check-native"
	runCheckRestored = "check-restored"
)

// recordAttempts bounds how often record-a and record-b are repeated if words stay unproven: each attempt moves memory anew. Of the
// many addresses in by-value structs of a large model one may well have the same lower half in both, even three times in a row.
const recordAttempts = 5

// Run materializes: it starts the engine as often as docs/architecture.md says, compiles, verifies, and only then gives
// the artifact its name. If a step fails, no artifact appears under that name. If the engine fails, its whole output is in
// Output.log.
func Run(ctx context.Context, o Options) (*artifacts.Artifact, error) {
	return stopped(run(ctx, o))
}

func run(ctx context.Context, o Options) (_ *artifacts.Artifact, err error) {
	if err := errors.Join(checkDirs(o.Dirs), o.checkUntil(), o.checkBefore()); err != nil {
		return nil, err
	}
	dir, remove, err := o.Traces, func() {}, error(nil)
	if dir != "" {
		err = private.Folder(dir)
	} else {
		dir, remove, err = runFolder()
	}
	if err != nil {
		return nil, fmt.Errorf("materialize %s: %w", o.Output, err)
	}
	defer remove()
	defer func() { err = keepOutput(err, o.Output+logSuffix) }()
	e := &engine{argv: o.Argv, library: o.Library, dir: dir, log: o.Log, alone: o.Alone}
	if o.Resume {
		if e.kept, err = e.readSeries(); err != nil {
			return nil, err
		}
	}
	compiled, err := e.openCaches()
	if err != nil {
		return nil, fmt.Errorf("materialize %s: %w", o.Output, err)
	}
	defer compiled.Close()
	var dirs []Dir
	dirs, e.env = withCaches(o.Dirs, compiled.Path, o.Note)
	if o.Traces != "" {
		defer func() {
			if err := e.keepCaches(); err != nil {
				o.Note(err.Error())
			}
		}()
	}
	const steps = 6

	o.Step(0, steps, "profile: size the KV cache")
	profiles, err := e.profile(func() ([]*recording.Recording, error) {
		return e.record(ctx, runProfile, contract.RunProfile, placement{}, nil)
	})
	if err == nil {
		err = checkAllMarks(profiles)
	}
	if err == nil {
		err = o.stop(UntilProfile)
	}
	if err != nil {
		return nil, err
	}
	caches, err := cachesOf(profiles)
	if err == nil && o.Alone > 0 {
		err = leaveRoom(caches, o.Communicator)
	}
	if err != nil {
		return nil, err
	}
	c, err := settle(ctx, e, o, caches, steps)
	if err != nil {
		return nil, err
	}
	if err := c.pads.Settle(&spill.File{}); err != nil {
		return nil, err
	}
	for rank, part := range byRank(c.art) {
		v := c.verified[rank]
		part.Created, part.Verification = o.Now, v.record
		part.Verification.Tied = e.tied
		if o.Alone > 0 {
			forgetResults(part)
		}
		for i := range part.Spec.Triggers {
			part.Spec.Triggers[i].Launches = v.launches(part.Spec.Triggers[i].Batch)
		}
		part.Stages = []artifacts.StageTimes{
			stageTimes(profiles[rank], "native", o.Now),
			v.restoredStages(v.record.Driver, o.Now),
		}
	}
	var closing func() error
	c.art.Directories, closing, err = packDirs(dirs, dir, o.Note)
	if err == nil {
		err = artifacts.Write(o.Output, c.art)
	}
	return c.art, errors.Join(err, closing())
}

// candidate is an artifact that is verified but has no name yet.
type candidate struct {
	art      *artifacts.Artifact
	pads     compile.Paddings
	verified []*verification // by rank
}

// cache is the bound of one rank's KV cache.
type cache struct {
	kvprofile.Profile
	profiled uint64 // bytes, before any were taken off
	reserve  uint64 // bytes to take off
	inputs   inputs
}

func cachesOf(profiles []*recording.Recording) ([]cache, error) {
	var out []cache
	for rank, r := range profiles {
		kv, err := kvProfile(r)
		if err != nil {
			return nil, ofRank(rank, len(profiles), err)
		}
		out = append(out, cache{kv, kv.KVBytes, libraryBytes(r), inputsOf(r)})
	}
	return out, nil
}

// settle makes candidates with smaller and smaller KV caches, beginning with the size of the profile less the memory that libraries keep,
// until a restored start leaves as much memory as a native one on every rank's device.
func settle(ctx context.Context, e *engine, o Options, caches []cache, steps int) (*candidate, error) {
	for attempt := 1; ; attempt++ {
		for i := range caches {
			k := &caches[i]
			if k.Elastic() {
				continue
			}
			if k.reserve >= k.KVBytes {
				return nil, fmt.Errorf("size KV cache: libraries keep %d bytes of the %d that the profile left", k.reserve, k.KVBytes)
			}
			k.KVBytes -= k.reserve
		}
		if o.Alone > 0 {
			alike(caches)
		}
		c, err := makeCandidate(ctx, e, o, caches, steps)
		if err != nil {
			return nil, err
		}
		var missing error
		for i, v := range c.verified {
			k := &caches[i]
			if k.Elastic() {
				// A start maps less if there is less room, so no other recording is needed.
				free := min(v.nativeFree, v.restoredFree)
				byRank(c.art)[i].KV.Measured(free - min(free, o.unseen()))
				continue
			}
			shrunk := k.profiled - k.KVBytes
			// mutant: noise in free memory
			if k.reserve = v.missingHeadroom(shrunk); k.reserve > headroomTolerance(k.TotalMemory) && missing == nil {
				missing = &HeadroomError{v.nativeFree, v.restoredFree, shrunk}
			}
		}
		if missing == nil {
			return c, nil
		}
		if attempt == headroomAttempts {
			return nil, missing
		}
	}
}

// attemptCandidate records, compiles and verifies once.
func attemptCandidate(ctx context.Context, e *engine, o Options, caches []cache, steps int) (t *attempt, err error) {
	t = &attempt{}
	var profiles []kvprofile.Profile
	for _, k := range caches {
		profiles = append(profiles, k.Profile)
	}
	if err := t.recordAndCompile(ctx, e, o, profiles, steps); err != nil {
		return t, err
	}
	if o.Alone > 0 {
		if err := compareCalls(t.specs); err != nil {
			return t, err
		}
	}
	c := &candidate{}
	for rank, r := range t.a {
		caches[rank].inputs.apply(t.specs[rank])
		if err := compile.Images(r, t.specs[rank], o.EmbedImages); err != nil {
			return t, fmt.Errorf("materialize %s: %w", o.Output, ofRank(rank, len(t.a), err))
		}
		part := &artifacts.Artifact{Identity: identityFactors(r), KV: caches[rank].Profile, Spec: t.specs[rank]}
		if rank == 0 {
			c.art = part
		} else {
			c.art.Peers = append(c.art.Peers, part)
		}
	}
	path := filepath.Join(e.dir, "candidate.medusa")
	o.Step(3, steps, "write candidate")
	if err := artifacts.Write(path, c.art); err != nil {
		return t, err
	}
	if err := o.stop(UntilRecord); err != nil {
		return t, err
	}
	o.Step(4, steps, "check-native: replay native graphs")
	native, more, err := e.checkNative(ctx, path, c.art, t.pads, false)
	if err == nil {
		err = e.keepNative(path)
	}
	if err == nil {
		err = o.stop(UntilNative)
	}
	if err != nil {
		return t, err
	}
	c.pads = slices.Concat(t.pads, more)
	for rank, part := range byRank(c.art) {
		tellVarying(part, native[rank].digest)
	}
	o.Step(5, steps, "check-restored: replay restored graphs")
	if c.verified, err = e.proveRestored(ctx, path, c.art, c.pads, native); err == nil {
		t.candidate = c
	}
	return t, err
}

// recordAndCompile makes record-a and record-b and compiles them, with fresh gaps as long as a word stays unproven, and once more if they
// allocate differently: record-a may be the first start that captures, and a compiler that measures its kernels then allocates memory
// that no later start does (Inductor takes as much as the device's L2 cache).
func (t *attempt) recordAndCompile(ctx context.Context, e *engine, o Options, profiles []kvprofile.Profile, steps int) error {
	for try := 1; ; try++ {
		var err error
		t.a, t.b, err = e.recorded(profiles)
		if err == nil && (t.a == nil || try > 1) {
			t.a, t.b, err = recordBoth(ctx, e, o, try, profiles, steps)
		}
		if err != nil {
			return err
		}
		if len(t.a) != len(profiles) {
			return fmt.Errorf("compile: %d ranks in record-a, %d in profile", len(t.a), len(profiles))
		}
		t.specs, t.pads, err = compileRanks(t.a, t.b)
		var word *compile.WordError
		var sequence *compile.SequenceError
		// mutant: recordings of a start that compiled
		if errors.As(err, &word) && word.Retry && try < recordAttempts || errors.As(err, &sequence) && try == 1 {
			continue
		}
		return err
	}
}

// recordBoth makes record-a and record-b.
func recordBoth(ctx context.Context, e *engine, o Options, attempt int, profiles []kvprofile.Profile, steps int) (a, b []*recording.Recording, err error) {
	o.Step(1, steps, "record-a: record the start")
	again := func(why string) {
		o.Step(1, steps, "record-a: record it again, at other addresses in each start: "+why)
	}
	if a, err = e.recordPlaced(ctx, attempt, profiles, again); err != nil {
		return nil, nil, err
	}
	seed, err := gapSeed()
	if err != nil {
		return nil, nil, err
	}
	o.Step(2, steps, "record-b: record it with other gaps")
	if b, err = e.recordMoved(ctx, attempt, seed, a, profiles); err != nil {
		return a, nil, err
	}
	return a, b, e.keep(series{Profiles: profiles})
}

// gapSeed returns a seed that is never zero (zero means no gaps).
func gapSeed() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("draw gap seed: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]) | 1, nil
}

func kvProfile(r *recording.Recording) (kvprofile.Profile, error) {
	if r.KV == nil {
		return kvprofile.Profile{}, errors.New("profile the KV cache: the engine marked no KV profile")
	}
	p := kvprofile.Profile{
		KVBytes: r.KV.KVBytes, TotalMemory: r.KV.Total, FreeBefore: r.KV.FreeBefore, FreeAfter: r.KV.FreeAfter,
		PeakForward: r.KV.PeakForward, Utilization: r.KV.Utilization, ProfileTokens: r.KV.ProfileTokens,
		Workspace: r.KV.Workspace,
	}
	if r.Elastic != nil {
		p.Least, p.Block = r.Elastic.Least, r.Elastic.Block
	}
	return p, p.Validate()
}

func identityFactors(r *recording.Recording) artifacts.Identity {
	var id artifacts.Identity
	for _, f := range r.Identity {
		id = append(id, artifacts.Factor{Key: f.Key, Value: f.Value})
	}
	return id
}

// stageTimes returns the seconds between phase marks.
func stageTimes(r *recording.Recording, mode string, now time.Time) artifacts.StageTimes {
	out := artifacts.StageTimes{Mode: mode, Date: now.Format(time.DateOnly)}
	if r.Device != nil {
		out.Device, out.Driver = r.Device.Name, driverVersion(r.Device.Driver)
	}
	for i := range r.Phases[:max(0, len(r.Phases)-1)] {
		out.Stages = appendStage(out.Stages, r.Phases[i].Name, float64(r.Phases[i+1].Time-r.Phases[i].Time)/1e9)
	}
	return out
}

// driverVersion spells cuDriverGetVersion's number as NVIDIA does: 12080 is 12.8.
func driverVersion(v uint32) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
