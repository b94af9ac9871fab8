package restore

import (
	"errors"
	"fmt"
	"os"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/status"
)

// restoration owns the objects of Graphs.
type restoration struct {
	memory    *memory
	addresses addresses
	reloaded  []liveModule
	execs     []cuda.GraphExec // by graph index
	templates int
	kernels   int
	found     []KernelFound

	lazy *builder // makes graphs at their first use; nil if all were made before ready

	invalid error    // why no graph may be replayed any more
	watches []watch  // the counters that say so
	modules []uint64 // handles of the engine's modules and libraries that graphs refer to
	events  []uint64 // handles of the engine's events that graphs refer to
}

// undo leaves the process as a native start has to find it, or says that it could not.
func (r *restoration) undo() error {
	if r.memory == nil {
		return nil
	}
	err := guarded(func() error {
		// mutant: variables put back after a failed restore
		return inTrigger(func() error { return errors.Join(putBack(r.memory.kept), r.destroy()) })
	})
	if panicked, ok := err.(*PanicError); ok {
		return &spoiltError{panicked}
	}
	return err
}

// destroy gives everything back in reverse order.
func (r *restoration) destroy() error {
	return errors.Join(destroyExecs(r.execs), r.memory.free(), unload(r.reloaded))
}

func (s *Session) trigger(run func() error) error {
	if !s.Restoring() && s.env.run != Check {
		return run()
	}
	before := triggerLaunches()
	elapsed := make(timings)
	stop := elapsed.start("run")
	err := inTrigger(run)
	stop()
	t := status.Trigger{Launches: triggerLaunches() - before, Milliseconds: milliseconds(elapsed["run"])}
	if n := len(s.triggers); n < len(s.spec.Triggers) {
		t.Batch = s.spec.Triggers[n].Batch
	}
	s.triggers = append(s.triggers, t)
	if err != nil {
		return s.fall(&Fallback{Engine, fmt.Errorf("run triggering layer at batch size %d: %w", t.Batch, err)})
	}
	return nil
}

func (s *Session) graphs() ([]*Graph, error) {
	if s.env.run != Restore {
		return nil, &Fallback{Engine, fmt.Errorf("restore graphs: this is a %s run", s.env.run)}
	}
	if s.fallback != nil {
		return nil, s.fallback
	}
	if !s.identified {
		return nil, s.fall(&Fallback{Engine, errors.New("restore graphs: the engine has not identified itself (call medusa_session_identify before the first allocation)")})
	}
	graphs := make([]*Graph, len(s.spec.Graphs))
	for i, g := range s.spec.Graphs {
		graphs[i] = &Graph{label: g.Label, batch: g.Batch, index: i, session: s}
	}
	r := &restoration{}
	if err := guarded(func() error { return s.rebuild(r) }); err != nil {
		// mutant: memory given back by a failed restore
		return nil, s.fall(&Fallback{codeOf(err, DriverError), errors.Join(reasonOf(err), r.undo())})
	}
	s.restored = r
	for _, g := range graphs {
		g.exec = r.execs[g.index]
	}
	return graphs, nil
}

func (s *Session) refuse(cause error) error {
	if s.env.run == Restore {
		s.reading = nil // of an artifact that nobody has asked for anything: the engine's reason counts
	}
	switch {
	case s.env.run == None:
		return nil
	case s.Fallback() != nil:
		return s.fallback
	case s.recording():
		s.say("record engine: %v", cause)
		os.Exit(Unsupported.exit())
	}
	if s.restored == nil {
		return s.fall(&Fallback{Unsupported, cause})
	}
	return s.giveUp(Engine, cause)
}

// giveUp undoes the restore, as far as it got, for the engine to start natively.
func (s *Session) giveUp(code Code, cause error) error {
	if r := s.restored; r != nil {
		if s.env.rank.several() {
			s.endAll(cause)
		}
		s.restored = nil
		cause = errors.Join(cause, r.undo())
	}
	return s.fall(&Fallback{code, cause})
}

// rebuild resolves, allocates, fills and builds. Whatever it made before it failed belongs to r.
func (s *Session) rebuild(r *restoration) error {
	done := s.timings.start("sequence")
	steps, err := sequence()
	if err != nil {
		return &Fallback{InterposerAbsent, err}
	}
	allocs, err := allocations()
	if err != nil {
		return &Fallback{InterposerAbsent, err}
	}
	allocs, err = s.align(steps, allocs, false)
	done()
	if err != nil {
		return &Fallback{SequenceMismatch, err}
	}

	done = s.timings.start("resolve")
	r.memory = engineMemory(s.spec, allocs)
	if err := r.memory.checkChains(); err != nil {
		return &Fallback{SequenceMismatch, err}
	}
	functions, err := s.resolve(r)
	done()
	if ran, wanted := len(s.triggers), len(s.spec.Triggers); err != nil && ran < wanted {
		err = fmt.Errorf("%w (the engine ran %d of %d triggering layers: call medusa_session_trigger for each size of medusa_session_triggers)", err, ran, wanted)
	}
	if err != nil {
		return &Fallback{codeOf(err, KernelNotFound), err}
	}
	r.events, err = engineEvents(s.spec)
	if err != nil {
		return &Fallback{SequenceMismatch, err}
	}
	if err := s.placeTensors(r.memory); err != nil {
		return &Fallback{SequenceMismatch, err}
	}
	for _, f := range functions {
		if f != 0 {
			r.kernels++
		}
	}
	err = inTrigger(func() error {
		done := s.timings.start("allocate")
		err := r.memory.allocate()
		if err == nil {
			r.addresses, err = r.memory.addresses()
		}
		done()
		if err != nil {
			return err
		}
		defer s.timings.start("contents")()
		return r.memory.fillContents()
	})
	if err == nil {
		done := s.timings.start("build")
		err = s.buildInto(r, functions)
		done()
	}
	if err == nil {
		// mutant: ranks agree before anything is replayed
		err = s.agree(stageBuilt)
	}
	if err == nil {
		err = s.check(r) // replays may hold collective operations: all ranks are here
	}
	if err == nil && s.env.check != checkNone {
		err = s.agree(stageChecked)
	}
	return err
}

// resolve finds the kernels, and the variables of modules.
func (s *Session) resolve(r *restoration) ([]cuda.Function, error) {
	finder, err := newResolver(s.spec)
	if err != nil {
		return nil, err
	}
	functions, err := finder.resolve()
	r.reloaded, r.found = finder.reloaded, finder.found
	if err == nil {
		err = finder.globals(r.memory)
	}
	r.modules = finder.used
	return functions, err
}

func (s *Session) buildInto(r *restoration, functions []cuda.Function) (err error) {
	b := &builder{spec: s.spec, memory: r.memory, functions: functions, events: r.events}
	if b.context, err = cuda.CurrentContext(); err != nil {
		return err
	}
	// mutant: graphs built at their first use
	if s.env.Lazy {
		r.execs, r.lazy = make([]cuda.GraphExec, len(s.spec.Graphs)), b
		return r.watch(s.spec)
	}
	groups, err := groupByShape(s.spec)
	if err != nil {
		return err
	}
	if r.execs, err = b.build(groups); err != nil {
		return err
	}
	r.templates = len(groups)
	if err := r.watch(s.spec); err != nil {
		return err
	}
	// Uploads are asynchronous; an error among them has to show before the decision to restore is final.
	return cuda.Stream(0).Synchronize()
}

// codeOf tells running out of memory from other failures of the driver; deflt is the code of the step itself.
func codeOf(err error, deflt Code) Code {
	var f *Fallback
	if errors.As(err, &f) {
		return f.Code
	}
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return Internal
	}
	var peer *PeerError
	if errors.As(err, &peer) {
		return peer.Code
	}
	var failed *CheckError
	if errors.As(err, &failed) {
		return CheckFailed
	}
	if errors.Is(err, graphir.ErrCorrupt) {
		return ArtifactCorrupt // a row group
	}
	if errors.Is(err, cuda.OutOfMemory) {
		return Memory
	}
	return deflt
}

// reasonOf is an error without the code that it may come with.
func reasonOf(err error) error {
	if f, ok := err.(*Fallback); ok {
		return f.Reason
	}
	return err
}

// ready builds the graph if nobody has used it yet.
func (g *Graph) ready() error {
	r := g.session.restored
	if r == nil {
		return &InvalidError{g.label, errors.New("the session is closed")}
	}
	if err := r.usable(); err != nil {
		return &InvalidError{g.label, err}
	}
	if g.exec != 0 {
		return nil
	}
	execs, err := r.lazy.build([][]int{{g.index}})
	if err == nil {
		r.execs[g.index] = execs[g.index]
		err = cuda.Stream(0).Synchronize()
	}
	if err != nil {
		return &InvalidError{g.label, g.session.failed(err)}
	}
	g.exec = execs[g.index]
	return nil
}

func (g *Graph) launch(stream cuda.Stream) error {
	if err := g.ready(); err != nil {
		return err
	}
	// mutant: stream of a launch
	if err := g.exec.Launch(stream); err != nil {
		return g.session.failed(err)
	}
	return nil
}

func (s *Session) ready(selfTest func() ([]byte, error)) error {
	if s.env.run == None {
		s.report(status.Native, nil)
	}
	s.serving = true
	if s.env.run == Restore {
		if s.fallback == nil && s.restored == nil {
			s.fall(&Fallback{Engine, errors.New("reach ready: the engine asked for no graphs")})
		}
		if s.fallback != nil {
			s.report(status.Native, nil)
		} else {
			s.report(status.Restored, nil)
		}
	}
	if !s.env.verifying() {
		return nil
	}
	if err := s.verify(selfTest); err != nil {
		s.say("verify: %v", err)
		os.Exit(1)
	}
	os.Exit(0)
	return nil
}
