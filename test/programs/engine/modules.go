package main

import (
	"encoding/binary"
	"fmt"

	_ "embed"

	"medusa/internal/cuda"
	"medusa/test/programs"
)

//go:embed kernels.ptx
var kernels string

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
	if m.plan.Library {
		l, err := cuda.LibraryLoadData(text)
		m.handle = uintptr(l)
		return err
	}
	h, err := cuda.ModuleLoadData(text)
	m.handle = uintptr(h)
	return err
}

// variables asks for the addresses of the module's variables and, if that is due, writes them.
func (p *program) variables(i int, write bool) error {
	m := &p.modules[i]
	for _, v := range []struct {
		name string
		out  *uint64
	}{{"state", &m.state}, {"where", &m.where}, {"factors", &m.factors}} {
		find := cuda.Module(m.handle).Global
		if m.plan.Library {
			find = cuda.LibraryHandle(m.handle).Global
		}
		at, _, err := find(v.name)
		if err != nil {
			return err
		}
		*v.out = uint64(at)
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

// function returns the target of a launch: a CUfunction, or a CUkernel in its place.
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
	return cuda.LibraryHandle(p.modules[i].handle).Kernel(name)
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
			if err := k.SetAttribute(cuda.FunctionAttribute(a.ID), a.Value, 0); err != nil {
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
func (p *program) kernelAttribute(i int, a *programs.FuncAttr) (int, error) {
	k, err := p.kernel(i, a.Kernel)
	if err != nil {
		return 0, err
	}
	return k.Attribute(cuda.FunctionAttribute(a.ID), 0)
}
