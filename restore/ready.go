package restore

import (
	"errors"
	"fmt"
	"os"
	"time"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/internal/panics"
	"medusa/restore/check"
	"medusa/restore/digest"
	"medusa/restore/live"
	"medusa/restore/memory"
	"medusa/restore/rebuild"
	"medusa/restore/status"
)

// Ready ends the start: the status object is written, and in check-native and check-restored selfTest is served, the graphs are replayed
// and hashed, and the answer is an *Exit. selfTest returns the engine's tokens for its fixed prompts; it may be nil.
// Call it after the mark "ready".
func (s *Session) Ready(selfTest func() ([]byte, error)) (err error) {
	s.opened()
	defer s.caught(&err)
	if s.exit != nil {
		return s.exit
	}
	if s.env.run == None {
		s.report(status.Native, nil)
	}
	s.serving = true
	if s.env.run == Restore {
		if s.fallback == nil && s.restored == nil {
			_ = s.fall(&Fallback{Engine, errors.New("reach ready: the engine asked for no graphs")})
		}
		switch {
		case s.exit != nil:
			return s.exit
		case s.fallback != nil:
			s.report(status.Native, nil)
		default:
			s.report(status.Restored, nil)
			s.tell()
		}
	}
	if !s.env.verifying() {
		return nil
	}
	if err := s.verify(selfTest); err != nil {
		if s.exit != nil { // the self test lost the device
			return s.exit
		}
		s.journal.say("verify: %v", err)
		return s.leave(1, "the graphs could not be verified")
	}
	s.together()
	return s.leave(0, "verification is done")
}

// together waits until all ranks have written their digests: an engine that sees a worker gone would end the others.
func (s *Session) together() {
	// mutant: ranks that have verified end together
	if s.env.rank.several() && s.env.Rendezvous != "" {
		if err := s.agreement.reach(stageVerified, ""); err != nil {
			s.journal.say("end with the other ranks: %v", err)
		}
	}
}

// replayPatience is how long one replay may take in a check.
const replayPatience = time.Minute

// check makes the checks before ready that the level asks for.
func (s *Session) check(r *rebuild.Graphs) (err error) {
	if s.env.check == check.None {
		return nil
	}
	c, err := s.checker(r.Memory, r.Execs, false, nil)
	if err != nil {
		return err
	}
	if s.env.verifying() { // check-restored: Ready replays, and compares
		if s.untouched, err = c.Untouched(); err == nil {
			s.weights, err = c.Weights()
		}
		return err
	}
	s.restored = r // the engine may ask for tensors before a replay
	err = c.BeforeReady(s.env.check, &s.source.artifact.Verification, s.agreeOnReplays)
	s.restored = nil
	s.journal.hashing, s.journal.otherWeights = c.Hashing, c.OtherWeights
	return err
}

// checker makes a checker of memory and executable graphs of this process, without the memory that is gone.
func (s *Session) checker(m *memory.Map, execs []cuda.GraphExec, native bool, gone func(object uint32) bool) (*check.Checker, error) {
	p := check.Process{Memory: m, Execs: execs, Native: native, Gone: gone, Steps: s.steps, Varying: make(map[string]bool), Patience: replayPatience, Time: s.journal.start}
	if s.end != nil {
		p.Overdue = s.overdue
	}
	if s.env.alone() {
		p.OfPeers = s.peers.reach
	}
	for _, g := range s.source.artifact.Verification.Graphs {
		p.Varying[g.Label] = !g.NativeDeterministic
	}
	if n := s.env.ReplaySeconds; n != 0 {
		p.Patience = time.Duration(n) * time.Second
	}
	return check.New(p)
}

// verify writes the digest of the graphs: restored ones, or those that this process captured itself.
func (s *Session) verify(selfTest func() ([]byte, error)) error {
	var c *check.Checker
	var err error
	if r := s.restored; r != nil {
		c, err = s.checker(r.Memory, r.Execs, false, nil)
	} else {
		c, err = s.nativeChecker()
	}
	if err != nil {
		return err
	}
	device, err := deviceName()
	if err != nil {
		return err
	}
	d, err := c.Verify(func() error { return s.serveSelfTest(selfTest) }, s.untouched)
	if err != nil {
		return err
	}
	d.Device, d.Weights = device, s.weights
	return digest.Write(s.env.CheckOut, d)
}

// earlier is the engine's memory before the phases that a restored start skips, or the reason why it could not
// be hashed: phases cannot fail.
type earlier struct {
	memory *check.Earlier
	err    error
}

func (s *Session) remember() *earlier {
	e := &earlier{}
	if s.opened(); s.source.artifact == nil {
		return e // Ready says why
	}
	e.err = panics.Catch(func() error {
		m, err := memory.OfEngine(s.source.spec(), false)
		if err == nil {
			e.memory, err = check.Remember(m)
		}
		return err
	})
	return e
}

// settle is called at the end of the work that a restored start skips.
func (e *earlier) settle() {
	if e.memory != nil && e.err == nil {
		// mutant: memory after skipped work and before triggers
		e.err = panics.Catch(e.memory.Settle)
	}
}

// nativeChecker looks at the graphs that this process captured itself.
func (s *Session) nativeChecker() (*check.Checker, error) {
	if s.source.artifact == nil {
		return nil, s.fallback
	}
	spec := s.source.spec()
	m, err := memory.OfEngine(spec, true)
	if err != nil {
		return nil, err
	}
	execs, err := captured(spec)
	if err != nil {
		return nil, err
	}
	if err := m.PlaceTensors(); err != nil {
		return nil, err
	}
	if err := rebuild.FindVariables(m); err != nil {
		return nil, err
	}
	c, err := s.checker(m, execs, true, nil)
	if err == nil && s.earlier != nil {
		c.Earlier, err = s.earlier.memory, s.earlier.err
	}
	return c, err
}

// captured returns the executables of the artifact's graphs that a native start has captured.
func captured(spec *graphir.Spec) ([]cuda.GraphExec, error) {
	graphs, err := live.CapturedGraphs()
	if err != nil {
		return nil, err
	}
	// Graphs that the engine captured before the phases that a restored start skips are its own.
	graphs = graphs[max(0, len(graphs)-len(spec.Graphs)):]
	if len(graphs) != len(spec.Graphs) {
		return nil, fmt.Errorf("match captured graphs: %d were captured, the artifact has %d", len(graphs), len(spec.Graphs))
	}
	execs := make([]cuda.GraphExec, len(graphs))
	for i, g := range graphs {
		if g.Label != spec.Graphs[i].Label || g.Exec == 0 {
			return nil, fmt.Errorf("match captured graph %d: %q (executable %#x), the artifact has %q", i, g.Label, uint64(g.Exec), spec.Graphs[i].Label)
		}
		execs[i] = g.Exec
	}
	return execs, nil
}

// capturedAll reports whether this is check-native, and the engine has captured the artifact's graphs.
func (s *Session) capturedAll() bool {
	if s.env.run != Check || s.Fallback() != nil || s.source.artifact == nil {
		return false
	}
	_, err := captured(s.source.spec())
	return err == nil
}

func (s *Session) serveSelfTest(selfTest func() ([]byte, error)) error {
	if s.env.SelfTestOut == "" || selfTest == nil {
		return nil
	}
	out, err := selfTest()
	if err != nil {
		return fmt.Errorf("serve self test: %w", err)
	}
	return os.WriteFile(s.env.SelfTestOut, out, 0o644)
}
