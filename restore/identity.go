package restore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/check"
	"medusa/restore/live"
)

func deviceName() (string, error) {
	d, err := cuda.CurrentDevice()
	if err != nil {
		return "", err
	}
	return d.Name()
}

// deviceFactors describes the current context's device and the driver.
func deviceFactors() (artifacts.Identity, error) {
	d, err := cuda.CurrentDevice()
	if err != nil {
		return nil, err
	}
	name, err := d.Name()
	if err != nil {
		return nil, err
	}
	var values [3]int
	for i, a := range []cuda.DeviceAttribute{cuda.ComputeCapabilityMajor, cuda.ComputeCapabilityMinor, cuda.MultiprocessorCount} {
		if values[i], err = d.Attribute(a); err != nil {
			return nil, err
		}
	}
	memory, err := d.TotalMem()
	if err != nil {
		return nil, err
	}
	driver, err := cuda.DriverVersion()
	if err != nil {
		return nil, err
	}
	return artifacts.Identity{
		{Key: artifacts.KeyGPUName, Value: name},
		{Key: artifacts.KeyComputeCapability, Value: fmt.Sprintf("%d.%d", values[0], values[1])},
		{Key: artifacts.KeySMCount, Value: strconv.Itoa(values[2])},
		{Key: artifacts.KeyGPUMemory, Value: strconv.FormatUint(memory, 10)},
		{Key: artifacts.KeyDriverVersion, Value: strconv.Itoa(driver)},
	}, nil
}

// Identify states the factors of the artifact's validity: the engine's factors (engine version, model configuration and
// checkpoint digest, arguments), to which the session adds those of the device. Recording runs note them; in a Restore
// run they are compared with the artifact's. It needs the engine's context to be current, and comes before the engine
// allocates anything: the memory that is free now decides whether the KV profile holds.
// A mismatch is returned as a *Fallback with code Incompatible whose reason lists every differing factor; the engine
// may ignore it and start natively.
func (s *Session) Identify(engine artifacts.Identity) (err error) {
	defer s.caught(&err)
	if s.env.run == None {
		return nil
	}
	s.opened()
	if s.exit != nil {
		return s.exit
	}
	defer s.journal.start("identify")()
	if s.stated { // mutant: an engine identifies itself once
		return s.Refuse(errors.New("identify engine: it has done so already (call medusa_session_identify once; it marks the identity itself)"))
	}
	s.stated = true
	device, err := deviceFactors()
	if errors.Is(err, cuda.InvalidContext) || errors.Is(err, cuda.NotInitialized) {
		return s.Refuse(fmt.Errorf("identify device: no CUDA context is current on this thread (make the engine's context current first): %w", err))
	}
	if err != nil {
		err = fmt.Errorf("identify device: %w", err)
		if s.Restoring() {
			return s.fall(&Fallback{DriverError, err})
		}
		return err
	}
	factors := slices.Concat(device, s.env.rank.factors(), engine)
	if s.recording() {
		for _, f := range factors {
			live.MarkIdentity(f.Key, f.Value)
		}
		return nil
	}
	if s.fallback != nil {
		return s.fallback
	}
	if s.free, s.total, err = cuda.MemInfo(); err != nil {
		return s.fall(&Fallback{DriverError, err})
	}
	s.identified = true
	if s.source.artifact == nil {
		if f := s.source.choose(s.env.Artifact, s.env.rank, factors, s.env.relaxed); f != nil {
			return s.fall(f)
		}
	} else if err := artifacts.Compare(s.source.artifact.Identity, factors, s.env.relaxed); err != nil { // mutant: identity check
		return s.fall(&Fallback{Incompatible, withCheck(err, s.env.Artifact)})
	}
	// mutant: graphs with collective calls are not built at their first use
	if s.lazyCalls() {
		return s.fall(&Fallback{Engine, errLazyCalls})
	}
	kv := &s.source.artifact.KV
	least := kv.KVBytes
	if s.elastic {
		least = cmp.Or(s.least, kv.Least, least)
	}
	if s.room, err = kv.Room(s.total, s.free, least); err != nil {
		return s.fall(&Fallback{Memory, err})
	}
	// mutant: ranks agree before anything is allocated
	if err := s.agree(stageStart); err != nil {
		return s.fall(&Fallback{codeOf(err, Engine), err})
	}
	return nil
}

// withCheck adds the command that lets another driver of the same major version pass on this machine.
func withCheck(m *artifacts.Mismatch, path string) error {
	if _, only := m.OnlyDriver(); !only {
		return m
	}
	return fmt.Errorf("%w (a full check on this machine lets this driver pass: medusa verify %s -- ENGINE [ARG...])", m, path)
}

var errSizeUnidentified = errors.New("size KV cache: the engine has not identified itself")

// agree returns nil once all ranks have come as far, or the reason why none goes on.
func (s *Session) agree(at stage) error {
	// mutant: ranks agree unless this one is alone
	if !s.env.rank.several() || s.env.alone() {
		return nil
	}
	defer s.journal.start("ranks")()
	token := s.source.token
	// mutant: ranks replay the same collective calls
	token += fmt.Sprintf(", replays with collective calls: %q", s.replays())
	return s.agreement.reach(at, token)
}

// replays names the graphs with collective calls that the checks before ready replay.
func (s *Session) replays() []string {
	a := s.source.artifact
	return check.Replayed(a.Spec, s.env.check, &a.Verification)
}

// agreeOnReplays is for ranks whose graphs wait for each other in collective calls: no rank replays one unless all ranks do.
func (s *Session) agreeOnReplays() error {
	if len(s.replays()) == 0 {
		return nil
	}
	return s.agree(stageReplays)
}

// errLazyCalls: ranks reach the first use of a graph at different times, if at all, and a collective call is made by all at once.
var errLazyCalls = errors.New("build graphs at their first use: they have collective calls, which all ranks make together before ready (unset " + contract.EnvLazy + ")")

// lazyCalls reports whether graphs with collective calls are to be built at their first use.
func (s *Session) lazyCalls() bool {
	spec := s.source.spec()
	for i := range spec.Graphs {
		if s.env.Lazy && spec.HasCollectives(i) {
			return true
		}
	}
	return false
}
