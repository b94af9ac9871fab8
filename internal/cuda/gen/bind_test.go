package main

import (
	"strings"
	"testing"
)

// The Go bindings for various C prototypes.
func TestBindings(t *testing.T) {
	for _, tc := range []struct{ name, prototype, binding, want string }{
		{"result", "(CUstream *stream, unsigned int flags)", "StreamCreate makes one.", `
// StreamCreate makes one.
func StreamCreate(flags uint32) (Stream, error) {
	var stream Stream
	err := procA.Call(uintptr(unsafe.Pointer(&stream)), uintptr(flags))
	return stream, err
}
`},
		{"number of 32 bits", "(int *value, CUdevice dev)", "Device.Value is one.", `
// Value is one.
func (d Device) Value() (int, error) {
	var value int32
	err := procA.Call(uintptr(unsafe.Pointer(&value)), uintptr(d))
	return int(value), err
}
`},
		{"two results and a string", "(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)", "Module.Global is one.", `
// Global is one.
func (m Module) Global(name string) (ptr DevicePtr, bytes uint64, err error) {
	nameC := cString(name)
	err = procA.Call(uintptr(unsafe.Pointer(&ptr)), uintptr(unsafe.Pointer(&bytes)), uintptr(m), uintptr(unsafe.Pointer(unsafe.SliceData(nameC))))
	return ptr, bytes, err
}
`},
		{"slice and struct", "(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count, const CUDA_MEMCPY3D *params)", "Graph.Add adds.", `
// Add adds.
func (g Graph) Add(deps []Node, params *Memcpy3D) (Node, error) {
	var node Node
	err := procA.Call(uintptr(unsafe.Pointer(&node)), uintptr(g), uintptr(unsafe.Pointer(unsafe.SliceData(deps))), uintptr(len(deps)), uintptr(unsafe.Pointer(params)))
	return node, err
}
`},
		{"receiver by pointer, words of Go", "(const CUDA_MEMCPY3D *copy, CUstream func)", "Memcpy3D.Run runs.", `
// Run runs.
func (m *Memcpy3D) Run(function Stream) error {
	return procA.Call(uintptr(unsafe.Pointer(m)), uintptr(function))
}
`},
		{"receiver that is not the first", "(CUgraph first, CUgraph second, unsigned char value, CUstream s)", "Stream.Run runs.", `
// Run runs.
func (s Stream) Run(first, second Graph, value byte) error {
	return procA.Call(uintptr(first), uintptr(second), uintptr(value), uintptr(s))
}
`},
		{"address of host memory", "(void **ptr, size_t bytes)", "HostAlloc allocates.", `
// HostAlloc allocates.
func HostAlloc(bytes uint64) (HostPtr, error) {
	var ptr HostPtr
	err := procA.Call(uintptr(unsafe.Pointer(&ptr)), uintptr(bytes))
	return ptr, err
}
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := bind("proc cuA cuA_v2 1 - " + tc.prototype + "\nbind cuA_v2 " + tc.binding)
			if err != nil {
				t.Fatal(err)
			}
			head := "// CUresult cuA_v2" + tc.prototype + "\nvar procA = libcuda.Proc(\"cuA_v2\")\n"
			if !strings.Contains(got, head+tc.want) {
				t.Errorf("got\n%s\nwant\n%s%s", got, head, tc.want)
			}
		})
	}
}

func TestBindingsRejected(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"type", "proc cuA cuA 1 - (CUjit_option *options)\nbind cuA A does it.", `cuA: no Go type of "CUjit_option *options" (bind it by hand)`},
		{"element", "proc cuA cuA 1 - (const void *data, size_t n)\nbind cuA A does it.", `cuA: no Go type of "void" (bind it by hand)`},
		{"receiver", "proc cuA cuA 1 - (CUgraph graph)\nbind cuA Stream.A does it.", "cuA: no parameter of type Stream"},
		{"two numbers", "proc cuA cuA 1 - (int *x, int *y)\nbind cuA A does it.", "several results, x among them is an int"},
		{"variable", "proc cuA cuA 1 - (void)\nproc cuA cuA_v2 2 - (void)\nbind cuA\nbind cuA_v2", "cuA_v2 and cuA share a name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := bind(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func bind(text string) (string, error) {
	s, err := parse(text)
	if err != nil {
		return "", err
	}
	out, err := bindingsGo(s)
	return string(out), err
}
