package cuda

import (
	"testing"
	"unsafe"
)

// Sizes and offsets of cuda.h on 64-bit Linux.
func TestMirrorLayouts(t *testing.T) {
	var k KernelNodeParams
	var c Memcpy3D
	var m MemsetNodeParams
	var l LaunchConfig
	var p MemAllocationProp
	for _, row := range []struct {
		what string
		got  uintptr
		want uintptr
	}{
		{"CUDA_KERNEL_NODE_PARAMS_v2", unsafe.Sizeof(k), 72},
		{"CUDA_KERNEL_NODE_PARAMS_v2.kernelParams", unsafe.Offsetof(k.Params), 40},
		{"CUDA_KERNEL_NODE_PARAMS_v2.kern", unsafe.Offsetof(k.Kern), 56},
		{"CUDA_MEMCPY3D", unsafe.Sizeof(c), 200},
		{"CUDA_MEMCPY3D.srcDevice", unsafe.Offsetof(c.SrcDevice), 48},
		{"CUDA_MEMCPY3D.dstXInBytes", unsafe.Offsetof(c.DstXInBytes), 88},
		{"CUDA_MEMCPY3D.dstDevice", unsafe.Offsetof(c.DstDevice), 136},
		{"CUDA_MEMCPY3D.WidthInBytes", unsafe.Offsetof(c.WidthInBytes), 176},
		{"CUDA_MEMSET_NODE_PARAMS_v1", unsafe.Sizeof(m), 40},
		{"CUstreamBatchMemOpParams", unsafe.Sizeof(MemOp{}), 48},
		{"CUstreamBatchMemOpParams.writeValue.flags", unsafe.Offsetof(MemOp{}.Flags), 24},
		{"CUDA_BATCH_MEM_OP_NODE_PARAMS", unsafe.Sizeof(BatchMemOpNodeParams{}), 32},
		{"CUgraphEdgeData", unsafe.Sizeof(EdgeData{}), 8},
		{"CUlaunchAttributeValue", unsafe.Sizeof(LaunchAttributeValue{}), 64},
		{"CUlaunchAttribute", unsafe.Sizeof(LaunchAttribute{}), 72},
		{"CUlaunchConfig", unsafe.Sizeof(l), 56},
		{"CUlaunchConfig.hStream", unsafe.Offsetof(l.Stream), 32},
		{"CUlaunchConfig.attrs", unsafe.Offsetof(l.Attrs), 40},
		{"CUDA_HOST_NODE_PARAMS", unsafe.Sizeof(HostNodeParams{}), 16},
		{"CUmemAllocationProp", unsafe.Sizeof(p), 32},
		{"CUmemAllocationProp.location", unsafe.Offsetof(p.Location), 8},
		{"CUmemAccessDesc", unsafe.Sizeof(MemAccessDesc{}), 12},
		{"CUipcMemHandle", unsafe.Sizeof(IpcMemHandle{}), 64},
	} {
		if row.got != row.want {
			t.Errorf("%s is at %d, want %d", row.what, row.got, row.want)
		}
	}
}

func TestArgsPointIntoThemselves(t *testing.T) {
	a := NewArgs().Reset().Ptr(0x1122334455667788).I32(-2).F32(1.5).Struct(7, 8)
	if a.params != 4 {
		t.Fatalf("%d parameters, want 4", a.params)
	}
	if got := *(*uint64)(a.ptrs[0]); got != 0x1122334455667788 {
		t.Errorf("parameter 0 is %#x", got)
	}
	if got := *(*int32)(a.ptrs[1]); got != -2 {
		t.Errorf("parameter 1 is %d", got)
	}
	if got := *(*float32)(a.ptrs[2]); got != 1.5 {
		t.Errorf("parameter 2 is %v", got)
	}
	if got := *(*[2]uint64)(a.ptrs[3]); got != [2]uint64{7, 8} {
		t.Errorf("parameter 3 is %v", got)
	}
	for range maxParams {
		a.I32(0)
	}
	if err := Function(0).Launch(Dim3{1, 1, 1}, Dim3{1, 1, 1}, 0, 0, a); err == nil {
		t.Error("an overlong parameter list was accepted")
	}
}
