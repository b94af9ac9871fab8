package restore

import (
	"errors"
	"fmt"
	"time"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/internal/panics"
	"medusa/restore/check"
	"medusa/restore/memory"
	"medusa/restore/status"
)

// Code says why a restore was given up, for programs.
type Code string

// The reasons to start natively.
const (
	ArtifactMissing  Code = "artifact_missing"
	ArtifactCorrupt  Code = "artifact_corrupt"
	Format           Code = "format" // the artifact's format is none that this code reads
	Incompatible     Code = "incompatible"
	Memory           Code = "memory"
	SequenceMismatch Code = "sequence_mismatch"
	KernelNotFound   Code = "kernel_not_found"
	DriverError      Code = "driver_error"
	InterposerAbsent Code = "interposer_absent"
	CheckFailed      Code = "check_failed"
	Engine           Code = "engine"
	Unsupported      Code = "unsupported"
	Internal         Code = "internal" // a panic of Medusa's own
)

// exit returns the process's exit code under MEDUSA_STRICT (design: 3 incompatible artifact, 5 corrupt artifact).
func (c Code) exit() int {
	switch c {
	case Format, Incompatible, Memory, Unsupported:
		return 3
	case ArtifactCorrupt:
		return 5
	}
	return 1
}

// Fallback says why the engine has to start natively. All effects of the restore are undone.
type Fallback struct {
	Code   Code
	Reason error
}

func (f *Fallback) Error() string { return fmt.Sprintf("%s: %v", f.Code, f.Reason) }

// Unwrap returns the reason.
func (f *Fallback) Unwrap() error { return f.Reason }

// Exit says that the process is to end now, with an exit code: a verification is over (0 if it was made), MEDUSA_STRICT forbids a native
// start, or only a new process can start natively (status.ExitSticky). The messages for the user are written already. The engine gives no
// memory back, makes no other driver call and leaves with the code.
type Exit struct {
	Code   int
	reason string
}

func (e *Exit) Error() string {
	return fmt.Sprintf("end the process with exit code %d: %s", e.Code, e.reason)
}

// Exit returns the *Exit that a call has returned, or would have if it returned errors; nil while the process may go on.
func (s *Session) Exit() *Exit { return s.exit }

// leave makes the process's end the answer to this call and to all that follow. The first one counts.
func (s *Session) leave(code int, reason string) error {
	if s.exit == nil {
		// mutant: end of a process
		s.exit = &Exit{code, reason}
	}
	return s.exit
}

// Refuse states that the engine takes no part in this start's purpose, or cannot use the graphs of Graphs. A recording
// run ends with the exit code of an incompatible engine; a Restore run gives everything back and goes on natively.
func (s *Session) Refuse(cause error) (err error) {
	defer s.caught(&err)
	if s.env.run == Restore {
		s.source.reading = nil // do not wait for the artifact: the engine's reason counts
	}
	switch {
	case s.exit != nil:
		return s.exit
	case s.env.run == None:
		return nil
	case s.Fallback() != nil:
		return s.fallback
	case s.recording():
		s.journal.say("record engine: %v", cause)
		return s.leave(Unsupported.exit(), "the engine cannot be recorded")
	}
	if s.restored == nil {
		return s.fall(&Fallback{Unsupported, cause})
	}
	return s.giveUp(Engine, cause)
}

// Failed tells the session about a driver error that the engine met after ready. If it is sticky and graphs were
// restored, the status says so and the error is an *Exit, for the supervising parent to start the engine
// natively; any other error is returned as it came.
func (s *Session) Failed(err error) error {
	if s.exit != nil {
		return s.exit
	}
	if s.restored != nil && cuda.Sticky(err) {
		return s.lost(err)
	}
	return err
}

// fall records the first reason to start natively and returns it. Under MEDUSA_STRICT, in a verifying run, and if the
// device context is lost or the engine's memory is, the process is to end instead.
func (s *Session) fall(f *Fallback) error {
	switch {
	case s.exit != nil:
		return s.exit
	case s.fallback != nil:
		return s.fallback
	}
	if s.env.run == Restore {
		s.agreement.fall(f)
	}
	var spoilt *memory.SpoiltError
	// mutant: new process if the context is lost or memory spoilt
	if cuda.Sticky(f.Reason) || errors.As(f.Reason, &spoilt) {
		return s.lost(f.Reason)
	}
	s.fallback = f
	if s.env.Strict || s.env.verifying() {
		s.journal.say("cannot restore: %v (this start may not go on natively, so the process ends)", f)
		s.report(status.Native, nil)
		return s.leave(f.Code.exit(), "no native start is allowed")
	}
	// mutant: escapes in the engine's lines
	s.journal.say("native start: %v", f)
	return f
}

// giveUp undoes the restore, as far as it got, for the engine to start natively.
func (s *Session) giveUp(code Code, cause error) error {
	if r := s.restored; r != nil {
		if s.env.rank.several() {
			s.journal.say("rank %d cannot use graphs that all ranks have restored: %v", s.env.rank.index, cause)
			s.report(status.Sticky, cause)
			return s.leave(status.ExitSticky, "the other ranks serve restored graphs")
		}
		s.restored = nil
		cause = errors.Join(cause, r.Undo())
	}
	return s.fall(&Fallback{code, cause})
}

// lost gives up a process whose context can do no further work: only a new one can start natively.
func (s *Session) lost(cause error) error {
	s.reportLost(cause)
	return s.leave(status.ExitSticky, "only a new process can start natively")
}

func (s *Session) reportLost(cause error) {
	s.journal.say("only a new process can start: %v", cause)
	s.report(status.Sticky, cause)
}

// overdue ends the process because of an overdue replay. The thread that makes the driver's calls is blocked.
func (s *Session) overdue(cause error) {
	if s.env.verifying() {
		s.journal.say("verify: %v", cause)
		s.end(1)
	}
	go func() {
		time.Sleep(2 * time.Second) // the status names the device, which needs the driver
		s.end(status.ExitSticky)
	}()
	s.reportLost(cause)
	s.end(status.ExitSticky)
}

// Guard runs f as one call of the engine's: a panic inside becomes the reason to start natively, or an error if the start does not restore.
// Every call of the C ABI goes through it.
func (s *Session) Guard(f func() error) (err error) {
	defer s.caught(&err)
	return f()
}

// caught is deferred by the methods that make driver calls: it makes their panics errors.
func (s *Session) caught(err *error) {
	if v := recover(); v != nil {
		*err = s.panicked(panics.Caught(v))
	}
}

// panicked: before ready the engine starts natively; after ready it goes on without restored graphs.
func (s *Session) panicked(p *panics.Error) error {
	if s.env.run != Restore {
		s.journal.say("%v", p)
		return p
	}
	if s.restored != nil && s.serving {
		s.Invalidate(p)
		return s.fall(&Fallback{Internal, p})
	}
	return s.giveUp(Internal, p)
}

// codeOf tells running out of memory from other failures of the driver; deflt is the code of the step itself.
func codeOf(err error, deflt Code) Code {
	var f *Fallback
	if errors.As(err, &f) {
		return f.Code
	}
	var panicked *panics.Error
	if errors.As(err, &panicked) {
		return Internal
	}
	var peer *peerError
	if errors.As(err, &peer) {
		return peer.code
	}
	var failed *check.Error
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
