package restore

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
	"medusa/internal/panics"
	"medusa/restore/check"
	"medusa/restore/live"
	"medusa/restore/memory"
	"medusa/restore/rebuild"
)

// Graphs restores every graph of the artifact and returns them in the order in which they were captured, uploaded and ready to launch. Any
// error is a *Fallback or an *Exit. Graphs then gives back all that it made. After a *Fallback the engine has to warm up and capture
// natively. Call it in the phase "capture", on the engine's thread.
func (s *Session) Graphs() (graphs []*Graph, err error) {
	s.opened()
	defer s.caught(&err)
	switch {
	case s.env.run != Restore:
		return nil, &Fallback{Engine, fmt.Errorf("restore graphs: this is a %s run", s.env.run)}
	case s.exit != nil:
		return nil, s.exit
	case s.fallback != nil:
		return nil, s.fallback
	case !s.identified:
		return nil, s.fall(&Fallback{Engine, errors.New("restore graphs: the engine has not identified itself (call medusa_session_identify before the first allocation)")})
	}
	all := s.source.spec().Graphs
	graphs = make([]*Graph, len(all))
	for i, g := range all {
		graphs[i] = &Graph{label: g.Label, batch: g.Batch, index: i, session: s}
	}
	done := s.journal.start("sequence")
	m, err := memory.OfEngine(s.source.spec(), false)
	done()
	if err != nil {
		return nil, s.fall(&Fallback{codeOfSequence(err), err})
	}
	r := rebuild.New(m)
	r.Collectives = s.collectives
	if err := panics.Catch(func() error { return s.rebuild(r) }); err != nil {
		// mutant: memory given back by a failed restore
		return nil, s.fall(&Fallback{codeOf(err, DriverError), errors.Join(reasonOf(err), r.Undo())})
	}
	s.restored = r
	return graphs, nil
}

// rebuild resolves, allocates, fills, builds and checks.
func (s *Session) rebuild(r *rebuild.Graphs) error {
	for _, step := range []struct {
		name string
		make func() error
		code Code // for errors without a more exact code
	}{
		{"resolve", r.Resolve, KernelNotFound},
		{"resolve", r.FindEvents, SequenceMismatch},
		{"resolve", r.Memory.PlaceTensors, SequenceMismatch},
		{"allocate", r.Allocate, DriverError},
		{"contents", r.Fill, DriverError},
		{"build", func() error { return r.Build(s.env.Lazy) }, DriverError},
	} {
		done := s.journal.start(step.name)
		err := step.make()
		done()
		if err != nil {
			return &Fallback{codeOf(err, step.code), s.withTriggers(err, step.code)}
		}
	}
	// mutant: ranks agree before anything is replayed
	err := s.agree(stageBuilt)
	if err == nil {
		err = s.connected()
	}
	if err == nil {
		err = s.check(r) // replays may hold collective operations: all ranks are here
	}
	if err == nil && s.env.check != check.None {
		err = s.agree(stageChecked)
	}
	return err
}

// connected takes the engine's step on all ranks. They agree after it: a rank that failed would leave the others with graphs that wait for it.
func (s *Session) connected() error {
	if s.connect == nil || !s.source.spec().AnyCollectives() {
		return nil
	}
	done := s.journal.start("connect")
	err := live.ForCommunicator(s.connect)
	done()
	if err != nil {
		return &Fallback{codeOf(err, DriverError), err}
	}
	// mutant: ranks agree that they are connected
	return s.agree(stageConnected)
}

// codeOfSequence tells an absent interposer from an engine that has allocated otherwise.
func codeOfSequence(err error) Code {
	var missing *cuda.MissingError
	if errors.As(err, &missing) {
		return InterposerAbsent
	}
	return SequenceMismatch
}

// withTriggers adds to the reason for a missing kernel that the engine has run too few triggering layers.
func (s *Session) withTriggers(err error, code Code) error {
	ran, wanted := len(s.journal.triggers), len(s.source.spec().Triggers)
	if code != KernelNotFound || ran >= wanted {
		return err
	}
	return fmt.Errorf("%w (the engine ran %d of %d triggering layers: call medusa_session_trigger for each size of medusa_session_triggers)", err, ran, wanted)
}
