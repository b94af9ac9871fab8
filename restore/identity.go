package restore

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"medusa/artifacts"
	"medusa/internal/cuda"
)

// CUresult cuCtxGetDevice(CUdevice *device)
var procCtxGetDevice = cuda.Driver("cuCtxGetDevice")

func currentDevice() (cuda.Device, error) {
	var d cuda.Device
	err := procCtxGetDevice.Call(uintptr(unsafe.Pointer(&d)))
	return d, err
}

func deviceName() (string, error) {
	d, err := currentDevice()
	if err != nil {
		return "", err
	}
	return d.Name()
}

// deviceFactors describes the current context's device and the driver.
func deviceFactors() (artifacts.Identity, error) {
	d, err := currentDevice()
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

// open reads the artifact under restore or under test.
func (s *Session) open() {
	defer s.timings.start("open")()
	path := s.env.artifact
	if s.env.run == Check {
		path = s.env.plan
	}
	if !interposerPresent() {
		s.fall(&Fallback{InterposerAbsent, errNoInterposer})
		return
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() && s.env.run == Restore {
		return // Identify chooses
	}
	a, err := artifacts.Read(path)
	if err != nil {
		s.fall(&Fallback{codeOfRead(err), err})
		return
	}
	s.artifact, s.spec = a, a.Spec
}

func codeOfRead(err error) Code {
	switch {
	case errors.Is(err, artifacts.ErrCorrupt):
		return ArtifactCorrupt
	case errors.Is(err, artifacts.ErrVersion):
		return Incompatible
	}
	return ArtifactMissing
}

func (s *Session) identify(engine artifacts.Identity) error {
	if s.env.run == None {
		return nil
	}
	defer s.timings.start("identify")()
	device, err := deviceFactors()
	if err != nil {
		err = fmt.Errorf("identify device: %w", err)
		if s.Restoring() {
			return s.fall(&Fallback{DriverError, err})
		}
		return err
	}
	factors := append(device, engine...)
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
		if f := s.choose(s.env.artifact, factors); f != nil {
			return s.fall(f)
		}
		return nil
	}
	if err := artifacts.Compare(s.artifact.Identity, factors, s.env.relaxed); err != nil {
		return s.fall(&Fallback{Incompatible, err})
	}
	return nil
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
	if err := s.artifact.KV.Check(s.total, s.free); err != nil {
		s.fall(&Fallback{Memory, err})
		return 0, false
	}
	return s.artifact.KV.KVBytes, true
}
