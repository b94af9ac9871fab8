// Package enginekit is shared by the engines of tests and the tests of kernels: a context, streams and events, a
// capture, and access to functions that only a stand-in for the driver exports.
//
// In: the driver that the dynamic linker finds. Out: handles. Fails: with the driver's error. It does not import restore, whose
// own tests use it.
package enginekit

import (
	"errors"

	"medusa/internal/cuda"
)

// Open makes the primary context of device 0 current on the calling thread, which the caller has locked.
func Open() (cuda.Device, cuda.Context, error) {
	if err := cuda.Init(); err != nil {
		return 0, 0, err
	}
	d, err := cuda.DeviceGet(0)
	if err != nil {
		return 0, 0, err
	}
	c, err := d.RetainPrimary()
	if err != nil {
		return 0, 0, err
	}
	return d, c, c.SetCurrent()
}

// Streams makes streams that do not wait for the default one.
func Streams(to ...*cuda.Stream) (err error) {
	for _, s := range to {
		if *s, err = cuda.StreamCreate(cuda.StreamNonBlocking); err != nil {
			return err
		}
	}
	return nil
}

// Events makes events that only order work.
func Events(to ...*cuda.Event) (err error) {
	for _, e := range to {
		if *e, err = cuda.EventCreate(cuda.EventDisableTiming); err != nil {
			return err
		}
	}
	return nil
}

// Functions finds functions of a module by their names.
func Functions(m cuda.Module, to map[string]*cuda.Function) (err error) {
	for name, f := range to {
		if *f, err = m.Function(name); err != nil {
			return err
		}
	}
	return nil
}

// Record makes a graph of the work that body issues on the stream and on those that it forks. The capture ends whatever happened in it.
func Record(s cuda.Stream, mode cuda.CaptureMode, body func() error) (cuda.Graph, error) {
	if err := s.BeginCapture(mode); err != nil {
		return 0, err
	}
	issued := body()
	g, err := s.EndCapture()
	if err := errors.Join(issued, err); err != nil {
		return 0, err
	}
	return g, nil
}

// Capture is Record with an executable graph as its result.
func Capture(s cuda.Stream, mode cuda.CaptureMode, body func() error) (cuda.GraphExec, error) {
	g, err := Record(s, mode, body)
	if err != nil {
		return 0, err
	}
	exec, err := g.Instantiate(0)
	return exec, errors.Join(err, g.Destroy())
}

// InOrder runs steps until one fails.
func InOrder(steps ...func() error) error {
	for _, s := range steps {
		if err := s(); err != nil {
			return err
		}
	}
	return nil
}

// StandIn is a function that only a stand-in for the driver exports, such as the simulated GPU. No driver has it: ask Present
// before calling it.
func StandIn(name string) *cuda.Proc { return driver.Proc(name) }

var driver = cuda.Library("libcuda.so.1")
