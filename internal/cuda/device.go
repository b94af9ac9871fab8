package cuda

import "unsafe"

// DeviceAttribute is a CUdevice_attribute.
type DeviceAttribute int32

// Attributes that identify a device.
const (
	MultiprocessorCount    DeviceAttribute = 16
	ComputeCapabilityMajor DeviceAttribute = 75
	ComputeCapabilityMinor DeviceAttribute = 76
)

// Init initializes the driver. It may be called more than once.
func Init() error { return procInit.Call(0) }

// Name returns the device's name, such as "NVIDIA H200".
func (d Device) Name() (string, error) {
	buf := make([]byte, 256)
	err := procDeviceGetName.Call(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(d))
	return goString(buf), err
}
