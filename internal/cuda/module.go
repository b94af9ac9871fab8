package cuda

import (
	"fmt"
	"unsafe"
)

// ModuleLoadData loads NUL-terminated PTX text, a cubin or a fatbin into the current context.
func ModuleLoadData(image []byte) (Module, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("cuModuleLoadData: %w", invalidImage)
	}
	var m Module
	err := procModuleLoadData.Call(uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&image[0])))
	return m, err
}

// JITOption is a CUjit_option.
type JITOption int32

// JITMaxRegisters is CU_JIT_MAX_REGISTERS, which bounds a kernel's registers.
const JITMaxRegisters JITOption = 0

// ModuleLoadDataEx is ModuleLoadData with one option for the driver's compiler.
func ModuleLoadDataEx(image []byte, option JITOption, value uintptr) (Module, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("cuModuleLoadDataEx: %w", invalidImage)
	}
	var m Module
	err := procModuleLoadDataEx.Call(uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&image[0])), 1,
		uintptr(unsafe.Pointer(&option)), uintptr(unsafe.Pointer(&value)))
	return m, err
}

// Functions returns all functions of the module, in the driver's order. It needs driver 12.4.
func (m Module) Functions() ([]Function, error) {
	var n uint32
	if err := procModuleGetFunctionCount.Call(uintptr(unsafe.Pointer(&n)), uintptr(m)); err != nil || n == 0 {
		return nil, err
	}
	fs := make([]Function, n)
	err := procModuleEnumerateFunctions.Call(uintptr(unsafe.Pointer(&fs[0])), uintptr(n), uintptr(m))
	return fs, err
}

// Name returns the function's mangled name. It needs driver 12.3.
func (f Function) Name() (string, error) {
	var p uintptr
	if err := procFuncGetName.Call(uintptr(unsafe.Pointer(&p)), uintptr(f)); err != nil {
		return "", err
	}
	return StringAt(p), nil
}

// ParamInfo returns the position of a parameter in the parameter buffer, in bytes. An index past the last gives InvalidValue.
func (f Function) ParamInfo(index int) (offset, size uint64, err error) {
	err = procFuncGetParamInfo.Call(uintptr(f), uintptr(index), uintptr(unsafe.Pointer(&offset)), uintptr(unsafe.Pointer(&size)))
	return offset, size, err
}

// FunctionAttribute is a CUfunction_attribute.
type FunctionAttribute int32
