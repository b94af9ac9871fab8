package cuda

import "unsafe"

// Device is a CUdevice: an ordinal's handle.
type Device int32

// DeviceAttribute is a CUdevice_attribute.
type DeviceAttribute int32

// Attributes that identify a device.
const (
	MultiprocessorCount    DeviceAttribute = 16
	ComputeCapabilityMajor DeviceAttribute = 75
	ComputeCapabilityMinor DeviceAttribute = 76
)

// CUresult cuInit(unsigned int Flags)
var procInit = Driver("cuInit")

// Init initialises the driver. It may be called more than once.
func Init() error { return procInit.Call(0) }

// CUresult cuDriverGetVersion(int *driverVersion)
var procDriverGetVersion = Driver("cuDriverGetVersion")

// DriverVersion is the CUDA version that the driver supports, as 1000*major + 10*minor.
func DriverVersion() (int, error) {
	var v int32
	err := procDriverGetVersion.Call(uintptr(unsafe.Pointer(&v)))
	return int(v), err
}

// CUresult cuDeviceGet(CUdevice *device, int ordinal)
var procDeviceGet = Driver("cuDeviceGet")

// DeviceGet is the device of an ordinal.
func DeviceGet(ordinal int) (Device, error) {
	var d Device
	err := procDeviceGet.Call(uintptr(unsafe.Pointer(&d)), uintptr(ordinal))
	return d, err
}

// CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
var procDeviceGetName = Driver("cuDeviceGetName")

// Name is the device's name, such as "NVIDIA H200".
func (d Device) Name() (string, error) {
	buf := make([]byte, 256)
	err := procDeviceGetName.Call(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(d))
	return goString(buf), err
}

// CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
var procDeviceGetAttribute = Driver("cuDeviceGetAttribute")

// Attribute is one attribute's value.
func (d Device) Attribute(a DeviceAttribute) (int, error) {
	var v int32
	err := procDeviceGetAttribute.Call(uintptr(unsafe.Pointer(&v)), uintptr(a), uintptr(d))
	return int(v), err
}

// CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
var procDeviceTotalMem = Driver("cuDeviceTotalMem_v2")

// TotalMem is the device's memory in bytes.
func (d Device) TotalMem() (uint64, error) {
	var n uint64
	err := procDeviceTotalMem.Call(uintptr(unsafe.Pointer(&n)), uintptr(d))
	return n, err
}
