package probe

import (
	"errors"
	"runtime"

	"medusa/internal/cuda"
)

// image is a kernel that compiles for every device since Maxwell.
var image = []byte(`.version 6.0
.target sm_50
.address_size 64
.visible .entry probe(.param .u64 value)
{
	ret;
}
` + "\x00")

// desk has the objects that probes share: the device's primary context, a stream, and the kernel as soon as a probe needs it.
type desk struct {
	device cuda.Device
	stream cuda.Stream
	module cuda.Module
	pinner runtime.Pinner // for memory to which parameters point
}

func newDesk(device cuda.Device) (*desk, error) {
	ctx, err := device.RetainPrimary()
	if err != nil {
		return nil, err
	}
	d := &desk{device: device}
	if err = ctx.SetCurrent(); err == nil {
		d.stream, err = cuda.StreamCreate(1) // CU_STREAM_NON_BLOCKING
	}
	if err != nil {
		return nil, errors.Join(err, device.ReleasePrimary())
	}
	return d, nil
}

// function loads the kernel.
func (d *desk) function() (cuda.Function, error) {
	if d.module == 0 {
		m, err := cuda.ModuleLoadData(image)
		if err != nil {
			return 0, err
		}
		d.module = m
	}
	return d.module.Function("probe")
}

// close releases everything. It ignores errors, because the probes are done.
func (d *desk) close() {
	if d.module != 0 {
		_ = d.module.Unload()
	}
	_ = d.stream.Destroy()
	_ = d.device.ReleasePrimary()
	d.pinner.Unpin()
}
