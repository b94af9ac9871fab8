package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"medusa/internal/contract"
)

// Either all ranks of a start restore, or none does. Otherwise a rank that profiles and captures would wait in collective
// operations for ranks that skip both. So the ranks of one start agree to go on, at each point from which there is no way back. If
// one rank does not agree, or does not arrive, all ranks start natively.
//
// The ranks meet in a directory. A rank leaves a file there when it is ready for a stage. The first rank that sees the files of all
// ranks, or that gives up waiting, links a decision to the stage's name. link is atomic and never replaces a file, so there is one
// decision. Every rank follows it, even if the rank would have decided otherwise.

// stage is a point at which ranks agree.
type stage string

const (
	stageStart     stage = "start"     // the artifact fits; before any allocation
	stageBuilt     stage = "built"     // all graphs are built; none was replayed yet
	stageConnected stage = "connected" // the engine has finished what its communicators left for later
	stageReplays   stage = "replays"   // the checks before ready have only the replays of graphs with collective calls left to do
	stageChecked   stage = "checked"   // the checks before ready have passed
	stageVerified  stage = "verified"  // a run that verifies is over
)

// stages are those before a start is ready.
var stages = []stage{stageStart, stageBuilt, stageConnected, stageReplays, stageChecked}

// agreement is one rank's side.
type agreement struct {
	dir    string
	rank   rank
	wait   time.Duration // for the slowest rank
	passed []stage
}

// agreeWithin bounds how long ranks wait for each other: weights may come from slow disks.
const agreeWithin = 10 * time.Minute

// peerError is the reason for a native start that does not lie in this rank itself.
type peerError struct {
	code   Code
	reason string
}

func (e *peerError) Error() string { return e.reason }

var errNoMeeting = errors.New("agree with the other ranks: " + contract.EnvRendezvous + " is unset (start the engine with medusa restore)")

// come tells the starter of the engine that this rank is one of several, and their number. Without this file, the starter does not
// repeat a start that ends early.
func (a *agreement) come() {
	// mutant: ranks tell that they are several
	if a.dir != "" && a.rank.several() {
		f, err := os.OpenFile(filepath.Join(a.dir, contract.RankFile(fmt.Sprint(a.rank.index))), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			_, _ = fmt.Fprint(f, a.rank.count)
			_ = f.Close()
		}
	}
}

// reach returns nil once all ranks have reached the stage with the same token, or else the reason why all start natively.
func (a *agreement) reach(s stage, token string) error {
	if err := a.announce(s, token); err != nil {
		return fmt.Errorf("agree with the other ranks on %s: %w", s, err)
	}
	come := uint32(0)
	made := noticeIn(a.decisions())
	defer made.close()
	for deadline := time.Now().Add(a.wait); ; made.wait(max(time.Until(deadline), time.Millisecond)) {
		if decided, err := a.decision(s); decided {
			a.passed = append(a.passed, s)
			return err
		}
		differs := false
		come, differs = a.count(s, token, come)
		switch {
		case differs:
			a.decide(s, Incompatible, fmt.Sprintf("ranks %d and %d restore different artifacts, or check different graphs", a.rank.index, come))
		case come == a.rank.count:
			// mutant: one decision for all ranks
			a.decide(s, "", "")
		case time.Now().After(deadline):
			reason := fmt.Sprintf("rank %d did not reach %s within %v", come, s, a.wait)
			a.decide(s, Engine, reason)
			if decided, _ := a.decision(s); !decided {
				// No decision can be written. Without this rank's file, no rank goes on.
				return errors.Join(&peerError{Engine, reason}, os.Remove(a.mine(s, a.rank.index)))
			}
		}
	}
}

// announce leaves this rank's file for a stage. If the file exists, it belongs to an earlier start, whose
// decision does not count for this one.
func (a *agreement) announce(s stage, token string) error {
	if err := a.prepare(); err != nil {
		return err
	}
	f, err := os.OpenFile(a.mine(s, a.rank.index)+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("this rank was started before (graphs are restored once in a start of the engine)")
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(token)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// Other ranks must not read an incomplete token.
	return os.Link(f.Name(), a.mine(s, a.rank.index))
}

// prepare makes the folder of decisions, if no other rank has made it.
func (a *agreement) prepare() error {
	err := os.Mkdir(a.decisions(), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// decisions is a folder of its own, so that only decisions wake a rank.
func (a *agreement) decisions() string { return filepath.Join(a.dir, "decided") }

func (a *agreement) mine(s stage, index uint32) string {
	return filepath.Join(a.dir, fmt.Sprintf("%s.%d", s, index))
}

// count returns the first rank, from the given one on, that is missing or has another token, and which of both; the number of ranks if there is none.
// It does not look again for ranks that came before: each look costs the processor time that other ranks need.
func (a *agreement) count(s stage, token string, from uint32) (next uint32, differs bool) {
	for next = from; next < a.rank.count; next++ {
		data, err := os.ReadFile(a.mine(s, next))
		if err != nil {
			return next, false
		}
		if string(data) != token {
			return next, true
		}
	}
	return next, false
}

// decide lets all ranks go on, or, with a code, start natively, unless that is decided already.
func (a *agreement) decide(s stage, code Code, reason string) {
	f, err := os.CreateTemp(a.dir, "decision-*")
	if err != nil {
		return // if no rank can write, all ranks time out
	}
	_, err = f.WriteString(string(code) + "\n" + reason)
	if errors.Join(err, f.Close(), a.prepare()) == nil {
		_ = os.Link(f.Name(), filepath.Join(a.decisions(), string(s)))
	}
	_ = os.Remove(f.Name())
}

// decision reads the decision: nil to go on.
func (a *agreement) decision(s stage) (decided bool, err error) {
	data, err := os.ReadFile(filepath.Join(a.decisions(), string(s)))
	if err != nil {
		return false, nil
	}
	code, reason, _ := strings.Cut(string(data), "\n")
	if code == "" {
		return true, nil
	}
	return true, &peerError{Code(code), reason}
}

// fall tells the others that this process starts natively.
func (a *agreement) fall(f *Fallback) {
	var peer *peerError
	if a.dir == "" || errors.As(f.Reason, &peer) {
		return
	}
	who := fmt.Sprintf("rank %d", a.rank.index)
	if !a.rank.several() {
		who = "a process that is none of several ranks"
	}
	for _, s := range stages {
		if !slices.Contains(a.passed, s) {
			a.decide(s, f.Code, fmt.Sprintf("%s starts natively: %v", who, f.Reason))
		}
	}
}
