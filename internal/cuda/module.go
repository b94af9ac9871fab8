package cuda

import (
	"fmt"
	"unsafe"
)

// ModuleLoadData loads PTX text that a zero byte ends, a cubin or a fatbin into the current context.
func ModuleLoadData(image []byte) (Module, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("cuModuleLoadData: %w", InvalidImage)
	}
	var m Module
	err := procModuleLoadData.Call(uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&image[0])))
	return m, err
}

// JITOption is a CUjit_option, JITMaxRegisters the one that bounds a kernel's registers.
type JITOption int32

// JITMaxRegisters is CU_JIT_MAX_REGISTERS.
const JITMaxRegisters JITOption = 0

// ModuleLoadDataEx is ModuleLoadData with one option of the compiler that the driver holds.
func ModuleLoadDataEx(image []byte, option JITOption, value uintptr) (Module, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("cuModuleLoadDataEx: %w", InvalidImage)
	}
	var m Module
	err := procModuleLoadDataEx.Call(uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&image[0])), 1,
		uintptr(unsafe.Pointer(&option)), uintptr(unsafe.Pointer(&value)))
	return m, err
}

// Functions are all functions of the module, in the driver's order. Drivers from 12.4 on have it.
func (m Module) Functions() ([]Function, error) {
	var n uint32
	if err := procModuleGetFunctionCount.Call(uintptr(unsafe.Pointer(&n)), uintptr(m)); err != nil || n == 0 {
		return nil, err
	}
	fs := make([]Function, n)
	err := procModuleEnumerateFunctions.Call(uintptr(unsafe.Pointer(&fs[0])), uintptr(n), uintptr(m))
	return fs, err
}

// Name is the function's mangled name. Drivers from 12.3 on have it.
func (f Function) Name() (string, error) {
	var p uintptr
	if err := procFuncGetName.Call(uintptr(unsafe.Pointer(&p)), uintptr(f)); err != nil {
		return "", err
	}
	return StringAt(p), nil
}

// ParamInfo is the place of a parameter in the parameter buffer, in bytes. An index past the last is InvalidValue.
func (f Function) ParamInfo(index int) (offset, size uint64, err error) {
	err = procFuncGetParamInfo.Call(uintptr(f), uintptr(index), uintptr(unsafe.Pointer(&offset)), uintptr(unsafe.Pointer(&size)))
	return offset, size, err
}

// FunctionAttribute is a CUfunction_attribute.
type FunctionAttribute int32
