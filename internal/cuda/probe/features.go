package probe

import (
	"errors"
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/internal/cuda/probe/result"
)

// feature is one probe. since is the version of the newest driver function that it calls; driver.spec has the same number. If a
// driver of at least this version lacks the feature, that is worth a report.
type feature struct {
	name  string
	since int
	need  result.Need
	try   func(*desk) error
}

var features = []feature{
	{"graphs from nodes: build, instantiate, upload, launch", 11040, result.Restore, (*desk).buildGraph},
	{"kernel nodes by CUDA 12 parameters", 12000, result.Restore, (*desk).kernelNode},
	{"dependencies with edge data", 12030, result.Restore, (*desk).edgeData},
	{"kernels of a loaded image by library", 12000, result.Restore, (*desk).library},
	{"stream capture", 10010, result.Record, (*desk).capture},
	{"entry points by version", 12000, result.Record, func(*desk) error { return entry(cuda.EntryGetProcAddress) }},
	{"names of functions", 12030, result.Restore, (*desk).functionName},
	{"layout of kernel parameters", 12040, result.Record, (*desk).paramInfo},
	{"functions of a module", 12040, result.Restore, (*desk).enumerate},
	{"virtual memory management", 10020, result.Artifacts, (*desk).mapMemory},
	{"stream-ordered allocation", 11020, result.Artifacts, (*desk).allocateInOrder},
	{"tensor maps", 12000, result.Artifacts, (*desk).tensorMap},
}

// entry probes a function by looking it up, without a call.
func entry(e cuda.Entry) error {
	_, err := e.Addr()
	return err
}

// attribute probes a CUdevice_attribute that is 1 if the device has the feature.
func attribute(a cuda.DeviceAttribute) func(*desk) error {
	return func(d *desk) error {
		v, err := d.device.Attribute(a)
		if err == nil && v == 0 {
			err = fmt.Errorf("device attribute %d is 0: %w", a, ErrNotSupported)
		}
		return err
	}
}

// withGraph makes an empty graph for a probe.
func withGraph(use func(cuda.Graph) error) error {
	g, err := cuda.GraphCreate(0)
	if err != nil {
		return err
	}
	return errors.Join(use(g), g.Destroy())
}

func (d *desk) buildGraph() error {
	return withGraph(func(g cuda.Graph) error {
		if _, err := g.AddEmptyNode(nil); err != nil {
			return err
		}
		e, err := g.Instantiate(0)
		if err != nil {
			return err
		}
		err = errors.Join(e.Upload(d.stream), e.Launch(d.stream), d.stream.Synchronize())
		return errors.Join(err, e.Destroy())
	})
}

func (d *desk) kernelNode() error {
	f, err := d.function()
	if err != nil {
		return err
	}
	return withGraph(func(g cuda.Graph) error {
		value := uint64(7)
		args := [1]unsafe.Pointer{unsafe.Pointer(&value)}
		d.pinner.Pin(&value)
		d.pinner.Pin(&args)
		p := cuda.KernelNodeParams{Func: f, Grid: cuda.Dim3{1, 1, 1}, Block: cuda.Dim3{1, 1, 1}, Params: uintptr(unsafe.Pointer(&args))}
		_, err := g.AddKernelNode(nil, &p)
		return err
	})
}

func (d *desk) edgeData() error {
	return withGraph(func(g cuda.Graph) error {
		from, err := g.AddEmptyNode(nil)
		if err != nil {
			return err
		}
		to, err := g.AddEmptyNode(nil)
		if err != nil {
			return err
		}
		return g.AddDependencies([]cuda.Node{from}, []cuda.Node{to}, []cuda.EdgeData{{}})
	})
}

func (d *desk) library() error {
	l, err := cuda.LibraryLoadData(image)
	if err != nil {
		return err
	}
	_, err = l.Kernel("probe")
	return errors.Join(err, l.Unload())
}

func (d *desk) capture() error {
	f, err := d.function()
	if err != nil {
		return err
	}
	if err := d.stream.BeginCapture(cuda.CaptureThreadLocal); err != nil {
		return err
	}
	launched := f.Launch(cuda.Dim3{1, 1, 1}, cuda.Dim3{1, 1, 1}, 0, d.stream, cuda.NewArgs().U64(0))
	g, err := d.stream.EndCapture() // even after an error, because a capturing stream is of no use
	if err := errors.Join(launched, err); err != nil {
		return err
	}
	n, err := g.NodeCount()
	if err == nil && n != 1 {
		err = fmt.Errorf("captured %d nodes instead of 1", n)
	}
	return errors.Join(err, g.Destroy())
}

func (d *desk) functionName() error {
	f, err := d.function()
	if err != nil {
		return err
	}
	name, err := f.Name()
	if err == nil && name != "probe" {
		err = fmt.Errorf("function is called %q", name)
	}
	return err
}

func (d *desk) paramInfo() error {
	f, err := d.function()
	if err != nil {
		return err
	}
	offset, size, err := f.ParamInfo(0)
	if err == nil && (offset != 0 || size != 8) {
		err = fmt.Errorf("parameter is %d bytes at %d", size, offset)
	}
	return err
}

func (d *desk) enumerate() error {
	if _, err := d.function(); err != nil {
		return err
	}
	fs, err := d.module.Functions()
	if err == nil && len(fs) != 1 {
		err = fmt.Errorf("module has %d functions instead of 1", len(fs))
	}
	return err
}

func (d *desk) tensorMap() error {
	major, err := d.device.Attribute(cuda.ComputeCapabilityMajor)
	if err != nil {
		return err
	}
	if major < 9 {
		return fmt.Errorf("compute capability %d.x: %w", major, ErrNotSupported)
	}
	return entry(cuda.EntryTensorMapEncodeTiled)
}
