// Package marks tells Medusa's interposer the facts that only the engine knows: phases, graph labels and tensors, through the
// functions of interpose/preload/medusa.h. Each is looked up in the process and may be absent; then its mark is a no-op,
// and the engine runs as if Medusa did not exist. No function here can fail.
package marks

import (
	"runtime"
	"unsafe"

	"medusa/internal/contract"
	"medusa/internal/cuda"
)

// Phase is a part of the start.
type Phase string

// The phases, in the order of a restored start.
const (
	Structure Phase = "structure"
	KVCache   Phase = "kv_cache"
	Weights   Phase = "weights"
	Tokenizer Phase = "tokenizer"
	WarmUp    Phase = "warmup"
	Capture   Phase = "capture"
	Ready     Phase = "ready"
)

// Role is a tensor's part in the graphs.
type Role uint32

// Roles.
const (
	Weight  Role = contract.RoleWeight
	KV      Role = contract.RoleKV
	Input   Role = contract.RoleInput
	Output  Role = contract.RoleOutput
	Scratch Role = contract.RoleScratch
)

// DType is an element type.
type DType uint32

// Element types that the engine has.
const (
	F32  DType = contract.DtypeF32
	F16  DType = contract.DtypeF16
	BF16 DType = contract.DtypeBf16
	I32  DType = contract.DtypeI32
)

// Tensor is memory that the engine names.
type Tensor struct {
	Name  string
	Addr  cuda.DevicePtr
	Size  uint64 // bytes
	Role  Role
	DType DType
	Shape []int

	// Integer inputs: values in [Lo, Hi), none twice if Distinct.
	Lo, Hi   int64
	Distinct bool
}

// KVProfile is the result of the KV-cache profile; sizes are in bytes.
type KVProfile = contract.KVProfile

var (
	procPhase     = cuda.Process("medusa_mark_phase")
	procGraph     = cuda.Process("medusa_mark_graph")
	procTensor    = cuda.Process("medusa_mark_tensor")
	procBlock     = cuda.Process("medusa_mark_block")
	procKVProfile = cuda.Process("medusa_mark_kv_profile")
	procCallLog   = cuda.Process("calllog_mark")
)

// invoke calls a function that may be absent.
//
//go:uintptrescapes
func invoke(p *cuda.Proc, args ...uintptr) {
	if p.Present() {
		_, _ = p.Invoke(args...)
	}
}

func cString(s string) []byte { return append([]byte(s), 0) }

// Begin marks the beginning of a phase.
func Begin(p Phase) {
	s := cString(string(p))
	invoke(procPhase, uintptr(unsafe.Pointer(&s[0])))
}

// Graph names the graph whose capture ends next on this thread.
func Graph(label string, batch int) {
	s := cString(label)
	invoke(procGraph, uintptr(unsafe.Pointer(&s[0])), uintptr(batch))
}

// Named marks a tensor.
func Named(t Tensor) {
	if !procTensor.Present() {
		return
	}
	name := cString(t.Name)
	c := &contract.Tensor{
		Name: &name[0], Addr: uint64(t.Addr), Size: t.Size, Role: uint32(t.Role), Dtype: uint32(t.DType), Fill: contract.FillUniform,
		Ndim: uint32(len(t.Shape)), Lo: t.Lo, Hi: t.Hi,
	}
	if t.Distinct {
		c.Fill = contract.FillDistinct
	}
	for i, d := range t.Shape {
		c.Shape[i] = int64(d)
	}
	var pin runtime.Pinner // C follows the pointer to the name
	pin.Pin(c.Name)
	defer pin.Unpin()
	invoke(procTensor, uintptr(unsafe.Pointer(c)))
}

// Block tells that the engine's own allocator handed a block inside of a driver allocation out, or took it back.
func Block(addr cuda.DevicePtr, size uint64, live bool) {
	var flag uintptr
	if live {
		flag = 1
	}
	invoke(procBlock, uintptr(addr), uintptr(size), flag)
}

// Profiled marks the result of the KV-cache profile.
func Profiled(p KVProfile) { invoke(procKVProfile, uintptr(unsafe.Pointer(&p))) }

// Medusa runs one of the session's steps between two lines in the call log, so that Medusa's driver calls can be told from
// the engine's own.
func Medusa(step func() error) error {
	CallLog(MedusaBegin)
	defer CallLog(MedusaEnd)
	return step()
}

// Lines in the call log around the session's steps.
const (
	MedusaBegin = "medusa begin"
	MedusaEnd   = "medusa end"
)

// CallLog writes a line into the call log of a device that keeps one, so that the log can be read section by section.
func CallLog(text string) {
	if !procCallLog.Present() {
		return
	}
	s := cString(text)
	invoke(procCallLog, uintptr(unsafe.Pointer(&s[0])))
}
