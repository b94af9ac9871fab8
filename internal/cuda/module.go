package cuda

import (
	"fmt"
	"unsafe"
)

// Module is a CUmodule, Function a CUfunction of it.
type (
	Module   uintptr
	Function uintptr
)

// CUresult cuModuleLoadData(CUmodule *module, const void *image)
var procModuleLoadData = Driver("cuModuleLoadData")

// ModuleLoadData loads PTX text that a zero byte ends, a cubin or a fatbin into the current context.
func ModuleLoadData(image []byte) (Module, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("cuModuleLoadData: %w", InvalidImage)
	}
	var m Module
	err := procModuleLoadData.Call(uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&image[0])))
	return m, err
}

// CUresult cuModuleUnload(CUmodule hmod)
var procModuleUnload = Driver("cuModuleUnload")

// Unload gives the module back; its functions become invalid.
func (m Module) Unload() error { return procModuleUnload.Call(uintptr(m)) }

// CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
var procModuleGetFunction = Driver("cuModuleGetFunction")

// Function is the module's function of a (mangled) name.
func (m Module) Function(name string) (Function, error) {
	var f Function
	s := cString(name)
	err := procModuleGetFunction.Call(uintptr(unsafe.Pointer(&f)), uintptr(m), uintptr(unsafe.Pointer(&s[0])))
	return f, err
}

// CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
var procModuleGetFunctionCount = Driver("cuModuleGetFunctionCount")

// CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
var procModuleEnumerateFunctions = Driver("cuModuleEnumerateFunctions")

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

// CUresult cuFuncGetName(const char **name, CUfunction hfunc)
var procFuncGetName = Driver("cuFuncGetName")

// Name is the function's mangled name. Drivers from 12.3 on have it.
func (f Function) Name() (string, error) {
	var p uintptr
	if err := procFuncGetName.Call(uintptr(unsafe.Pointer(&p)), uintptr(f)); err != nil {
		return "", err
	}
	return StringAt(p), nil
}

// CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
var procFuncGetModule = Driver("cuFuncGetModule")

// Module is the module that the function came from.
func (f Function) Module() (Module, error) {
	var m Module
	err := procFuncGetModule.Call(uintptr(unsafe.Pointer(&m)), uintptr(f))
	return m, err
}

// CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
var procFuncGetParamInfo = Driver("cuFuncGetParamInfo")

// ParamInfo is the place of a parameter in the parameter buffer, in bytes. An index past the last is InvalidValue.
func (f Function) ParamInfo(index int) (offset, size uint64, err error) {
	err = procFuncGetParamInfo.Call(uintptr(f), uintptr(index), uintptr(unsafe.Pointer(&offset)), uintptr(unsafe.Pointer(&size)))
	return offset, size, err
}

// FunctionAttribute is a CUfunction_attribute.
type FunctionAttribute int32

// CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
var procFuncGetAttribute = Driver("cuFuncGetAttribute")

// Attribute is one attribute's value.
func (f Function) Attribute(a FunctionAttribute) (int, error) {
	var v int32
	err := procFuncGetAttribute.Call(uintptr(unsafe.Pointer(&v)), uintptr(a), uintptr(f))
	return int(v), err
}

// CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
var procFuncSetAttribute = Driver("cuFuncSetAttribute")

// SetAttribute sets one attribute.
func (f Function) SetAttribute(a FunctionAttribute, value int) error {
	return procFuncSetAttribute.Call(uintptr(f), uintptr(a), uintptr(value))
}
