package restore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"medusa/artifacts"
	"medusa/internal/cuda"
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

// read is an artifact, or why there is none.
type read struct {
	path     string
	artifact *artifacts.Artifact
	err      error
}

// open begins to read the artifact under restore or under test: while it is decoded, the engine makes its context.
func (s *Session) open() {
	path := s.env.Artifact
	if s.env.run == Check {
		path = s.env.CheckPlan
	}
	if s.env.run == Restore && s.env.rank.several() && s.env.Rendezvous == "" {
		s.fall(&Fallback{Incompatible, errNoMeeting})
		return
	}
	if !interposerPresent() {
		s.fall(&Fallback{InterposerAbsent, errNoInterposer})
		return
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() && s.env.run == Restore {
		return // Identify chooses
	}
	s.reading = make(chan read, 1)
	// mutant: artifact is read while the engine makes its context
	go func() {
		var a *artifacts.Artifact
		err := guarded(func() (err error) {
			a, err = artifacts.ReadRank(path, int(s.env.rank.index))
			return err
		})
		s.reading <- read{path, a, err}
	}()
}

// opened waits for the artifact if it is still being read. Every question about it begins here.
func (s *Session) opened() {
	if s.reading == nil {
		return
	}
	defer s.timings.start("open")()
	r := <-s.reading
	s.reading = nil
	if r.err != nil {
		s.fall(&Fallback{codeOfRead(r.err), r.err})
		return
	}
	s.take(r.path, r.artifact)
}

func codeOfRead(err error) Code {
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked):
		return Internal
	case errors.Is(err, artifacts.ErrCorrupt):
		return ArtifactCorrupt
	case errors.Is(err, artifacts.ErrVersion):
		return Format
	}
	return ArtifactMissing
}

func (s *Session) identify(engine artifacts.Identity) error {
	if s.env.run == None {
		return nil
	}
	s.opened()
	defer s.timings.start("identify")()
	if s.stated { // mutant: an engine identifies itself once
		return s.refuse(errors.New("identify engine: it has done so already (call medusa_session_identify once; it marks the identity itself)"))
	}
	s.stated = true
	device, err := deviceFactors()
	if errors.Is(err, cuda.InvalidContext) || errors.Is(err, cuda.NotInitialized) {
		return s.refuse(fmt.Errorf("identify device: no CUDA context is current on this thread (make the engine's context current first): %w", err))
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
			markIdentity(f.Key, f.Value)
		}
		return nil
	}
	if !s.Restoring() {
		return s.fallback
	}
	if s.free, s.total, err = cuda.MemInfo(); err != nil {
		return s.fall(&Fallback{DriverError, err})
	}
	s.identified = true
	if s.artifact == nil {
		if f := s.choose(s.env.Artifact, factors); f != nil {
			return s.fall(f)
		}
	} else if err := artifacts.Compare(s.artifact.Identity, factors, s.env.relaxed); err != nil { // mutant: identity check
		return s.fall(&Fallback{Incompatible, withCheck(err, s.env.Artifact)})
	}
	if err := s.artifact.KV.Check(s.total, s.free); err != nil {
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

// take makes an artifact the one that is restored.
func (s *Session) take(path string, a *artifacts.Artifact) {
	s.artifact, s.spec = a, a.Spec
	s.token = fmt.Sprintf("%s of %s", path, a.Created.UTC())
}

// agree returns once all ranks have come as far, or with the reason why none goes on.
func (s *Session) agree(at stage) error {
	if !s.env.rank.several() {
		return nil
	}
	defer s.timings.start("ranks")()
	return s.agreement.reach(at, s.token)
}

func (s *Session) kvBytes() (uint64, bool) {
	switch {
	case s.env.run == Record || s.env.run == Check:
		return s.env.kvBytes, s.env.kvBytes != 0
	case !s.Restoring():
		return 0, false
	}
	defer s.timings.start("kv")()
	if !s.identified {
		s.fall(&Fallback{Engine, errors.New("size KV cache: the engine has not identified itself")})
		return 0, false
	}
	return s.artifact.KV.KVBytes, true
}

func (s *Session) workspace() uint64 {
	if s.Restoring() {
		return s.artifact.KV.Workspace
	}
	return s.env.workspace
}
