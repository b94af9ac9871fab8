// Package probe finds out which features the driver of this process has, by trying them. It does not rely on version numbers,
// because drivers of clouds and containers lack functions that their version promises.
//
// In: the driver that the dynamic linker finds. Out: result.Result. A probe has one of three outcomes. A missing symbol,
// CUDA_ERROR_NOT_SUPPORTED and ErrNotSupported mean "not supported"; any other error is inconclusive. No function here panics,
// but a broken driver can crash the process, so run the probe in a process of its own.
package probe

import (
	"errors"
	"fmt"
	"runtime"

	"medusa/internal/cuda"
	"medusa/internal/cuda/probe/result"
)

// ErrNotSupported is in the chain of an error that says that a device lacks a feature.
var ErrNotSupported = errors.New("not supported")

// Devices opens the driver and lists its devices, without creating a context.
func Devices() *result.Result {
	r := &result.Result{Devices: []result.Device{}, Features: []result.Feature{}, Interposer: interposer()}
	if err := open(r); err != nil {
		r.Error = err.Error()
		return r
	}
	r.Reachable = true
	if len(r.Devices) == 0 {
		r.Error = "the driver shows no device"
	}
	return r
}

// Run opens the driver and probes device 0.
func Run() *result.Result {
	runtime.LockOSThread() // contexts belong to threads
	defer runtime.UnlockOSThread()
	r := Devices()
	if len(r.Devices) == 0 {
		return r
	}
	d, err := newDesk(cuda.Device(0))
	if err == nil {
		defer d.close()
		dev := &r.Devices[0]
		dev.Free, dev.Total, err = cuda.MemInfo()
	}
	if err != nil {
		r.Error = err.Error()
	}
	for _, f := range features {
		state, detail := Classify(func() error {
			if d == nil {
				return err
			}
			return f.try(d)
		}())
		r.Features = append(r.Features, result.Feature{Name: f.name, Since: f.since, Need: f.need, State: state, Detail: detail})
	}
	return r
}

// Classify turns a probe's error into a state and its reason.
func Classify(err error) (result.State, string) {
	var missing *cuda.MissingError
	var code cuda.Result
	switch {
	case err == nil:
		return result.Available, ""
	case errors.Is(err, ErrNotSupported), errors.As(err, &missing) && missing.Symbol != "", errors.As(err, &code) && code == notSupported:
		return result.NotSupported, err.Error()
	}
	return result.Inconclusive, err.Error()
}

// notSupported is CUDA_ERROR_NOT_SUPPORTED.
const notSupported cuda.Result = 801

// interposer looks for the functions that every restore needs (interpose/preload/medusa.h).
func interposer() bool {
	return cuda.Process("medusa_play").Present() && cuda.Process("medusa_sequence").Present()
}

func open(r *result.Result) error {
	if err := cuda.Init(); err != nil {
		return err
	}
	var err error
	if r.Driver, err = cuda.DriverVersion(); err != nil {
		return err
	}
	n, err := cuda.DeviceCount()
	if err != nil {
		return err
	}
	for i := range n {
		d, err := describe(i)
		if err != nil {
			return fmt.Errorf("describe device %d: %w", i, err)
		}
		r.Devices = append(r.Devices, d)
	}
	return nil
}

func describe(ordinal int) (result.Device, error) {
	out := result.Device{Ordinal: ordinal}
	d, err := cuda.DeviceGet(ordinal)
	if err != nil {
		return out, err
	}
	if out.Name, err = d.Name(); err != nil {
		return out, err
	}
	major, err := d.Attribute(cuda.ComputeCapabilityMajor)
	if err != nil {
		return out, err
	}
	minor, err := d.Attribute(cuda.ComputeCapabilityMinor)
	if err != nil {
		return out, err
	}
	out.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	if out.SMCount, err = d.Attribute(cuda.MultiprocessorCount); err != nil {
		return out, err
	}
	out.Memory, err = d.TotalMem()
	return out, err
}
