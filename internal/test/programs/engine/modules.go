package main

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	_ "embed"

	"medusa/internal/cuda"
	"medusa/internal/test/programs"
)

//go:embed kernels.ptx
var kernels string

var (
	libraryLoad        = cuda.Driver("cuLibraryLoadData")
	libraryGetKernel   = cuda.Driver("cuLibraryGetKernel")
	libraryGetGlobal   = cuda.Driver("cuLibraryGetGlobal")
	moduleGetGlobal    = cuda.Driver("cuModuleGetGlobal_v2")
	kernelSetAttribute = cuda.Driver("cuKernelSetAttribute")
	kernelGetAttribute = cuda.Driver("cuKernelGetAttribute")
)

// module is a loaded copy of the kernels, and the addresses of its variables.
type module struct {
	plan                  *programs.Module
	handle                uintptr
	state, where, factors uint64
}

// load loads a module. Every module of every program has an image of its own: copies of one image cannot be told apart.
func (p *program) load(i int) error {
	m := &p.modules[i]
	if m.handle != 0 {
		return nil
	}
	m.plan = &p.plan.Modules[i]
	text, err := p.e.room.bytes(len(kernels) + 64)
	if err != nil {
		return err
	}
	copy(text, fmt.Sprintf("%s\n// program %d.%d\n", kernels, p.plan.Seed, i))
	if m.plan.Twice {
		if _, err := cuda.ModuleLoadData(text); err != nil {
			return err
		}
	}
	out := uintptr(unsafe.Pointer(&m.handle))
	if m.plan.Library {
		return libraryLoad.Call(out, uintptr(addr(text)), 0, 0, 0, 0, 0, 0)
	}
	h, err := cuda.ModuleLoadData(text)
	m.handle = uintptr(h)
	return err
}

// variables asks for the addresses of the module's variables and, where that is due, writes them.
func (p *program) variables(i int, write bool) error {
	m := &p.modules[i]
	for _, v := range []struct {
		name string
		out  *uint64
	}{{"state", &m.state}, {"where", &m.where}, {"factors", &m.factors}} {
		get := moduleGetGlobal
		if m.plan.Library {
			get = libraryGetGlobal
		}
		var size uint64
		name := append([]byte(v.name), 0)
		if err := get.Call(uintptr(unsafe.Pointer(v.out)), uintptr(unsafe.Pointer(&size)), m.handle, uintptr(unsafe.Pointer(&name[0]))); err != nil {
			return err
		}
	}
	if !write {
		return nil
	}
	data := words(p.plan.Seed, -1-i, 0)
	if err := put(m.state, data); err != nil {
		return err
	}
	if err := put(m.factors, data[:64]); err != nil {
		return err
	}
	if m.plan.Where < 0 {
		return nil
	}
	return put(m.where, binary.LittleEndian.AppendUint64(nil, p.addr[m.plan.Where]))
}

// function returns what a launch names: a CUfunction, or a CUkernel in its place.
func (p *program) function(i int, name string) (cuda.Function, error) {
	if p.modules[i].plan.ByKernel {
		k, err := p.kernel(i, name)
		return cuda.Function(k), err
	}
	return p.ownFunction(i, name)
}

func (p *program) ownFunction(i int, name string) (cuda.Function, error) {
	m := &p.modules[i]
	if !m.plan.Library {
		return cuda.Module(m.handle).Function(name)
	}
	k, err := p.kernel(i, name)
	if err != nil {
		return 0, err
	}
	return k.Function()
}

func (p *program) kernel(i int, name string) (cuda.Kernel, error) {
	var k cuda.Kernel
	text := append([]byte(name), 0)
	err := libraryGetKernel.Call(uintptr(unsafe.Pointer(&k)), p.modules[i].handle, uintptr(unsafe.Pointer(&text[0])))
	return k, err
}

// attributes sets the function attributes of one phase.
func (p *program) attributes(i int, capture bool) error {
	m := &p.modules[i]
	for _, a := range m.plan.Attrs {
		if a.Capture != capture {
			continue
		}
		if a.OnKernel {
			k, err := p.kernel(i, a.Kernel)
			if err != nil {
				return err
			}
			if err := kernelSetAttribute.Call(uintptr(a.ID), uintptr(a.Value), uintptr(k), 0); err != nil {
				return err
			}
			continue
		}
		f, err := p.ownFunction(i, a.Kernel)
		if err != nil {
			return err
		}
		if err := f.SetAttribute(cuda.FunctionAttribute(a.ID), a.Value); err != nil {
			return err
		}
	}
	return nil
}

// kernelAttribute reads an attribute that was set on a library's kernel.
func (p *program) kernelAttribute(i int, a *programs.FuncAttr) (int32, error) {
	k, err := p.kernel(i, a.Kernel)
	if err != nil {
		return 0, err
	}
	var v int32
	err = kernelGetAttribute.Call(uintptr(unsafe.Pointer(&v)), uintptr(a.ID), uintptr(k), 0)
	return v, err
}
