package cuda

import (
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
)

// driverName is the name that every CUDA program opens: the soname, never a path, so that LD_LIBRARY_PATH selects the driver.
const driverName = "libcuda.so.1"

// libcuda is the driver.
var libcuda = &SharedLibrary{path: driverName, hint: "is an NVIDIA driver installed? LD_LIBRARY_PATH chooses the simulated GPU"}

// process stands for all libraries that the process has loaded (RTLD_DEFAULT).
var process = &SharedLibrary{path: "this process", opened: true, handle: purego.RTLD_DEFAULT}

// MissingError means that a library could not be opened or lacks a symbol.
type MissingError struct {
	Library string
	Symbol  string // empty if the library itself is missing
	Reason  string // the text of dlerror
	Hint    string
}

func (e *MissingError) Error() string {
	hint := ""
	if e.Hint != "" {
		hint = " (" + e.Hint + ")"
	}
	if e.Symbol == "" {
		return fmt.Sprintf("open %s: %s%s", e.Library, e.Reason, hint)
	}
	return fmt.Sprintf("find %s in %s: %s%s", e.Symbol, e.Library, e.Reason, hint)
}

// SharedLibrary is a shared library that is opened when one of its symbols is first needed. It is never closed, because its code
// may be on a stack or in a driver's callback table at any later time.
type SharedLibrary struct {
	path, hint string

	mu     sync.Mutex
	opened bool
	handle uintptr
	err    error
}

// Library names another shared library, by path or soname. The first use of one of its symbols opens it.
func Library(path string) *SharedLibrary { return &SharedLibrary{path: path} }

// Open opens the library. Calling it is optional; it shows early whether the library can be opened.
func (l *SharedLibrary) Open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened {
		return l.err
	}
	l.opened = true
	// RTLD_GLOBAL, as the CUDA runtime does: other libraries of the process may look up the driver's symbols.
	handle, err := purego.Dlopen(l.path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		l.err = &MissingError{Library: l.path, Reason: err.Error(), Hint: l.hint}
		return l.err
	}
	l.handle = handle
	return nil
}

// Proc names a symbol of the library without looking it up.
func (l *SharedLibrary) Proc(name string) *Proc { return &Proc{lib: l, name: name} }

// Process names a symbol of any library that the process has loaded, such as a preloaded one. Such symbols are often absent: ask
// Present before the call.
func Process(name string) *Proc { return process.Proc(name) }

// Proc is a C function that is looked up at its first use. The result of the lookup, found or not, is kept.
type Proc struct {
	lib  *SharedLibrary
	name string

	once sync.Once
	addr uintptr
	err  error
}

// Name returns the symbol's name.
func (p *Proc) Name() string { return p.name }

// Find looks the function up. The error is a *MissingError.
func (p *Proc) Find() error {
	p.once.Do(func() {
		if p.err = p.lib.Open(); p.err != nil {
			return
		}
		addr, err := purego.Dlsym(p.lib.handle, p.name)
		if err != nil {
			p.err = &MissingError{Library: p.lib.path, Symbol: p.name, Reason: err.Error()}
			return
		}
		p.addr = addr
	})
	return p.err
}

// Present reports whether the function exists.
func (p *Proc) Present() bool { return p.Find() == nil }

// Addr returns the function's address, for programs of calls that C code runs.
func (p *Proc) Addr() (uintptr, error) {
	err := p.Find()
	return p.addr, err
}

// Invoke calls the function with integer and pointer arguments (32 at most) and returns its result register.
//
//go:uintptrescapes
func (p *Proc) Invoke(args ...uintptr) (uintptr, error) {
	if err := p.Find(); err != nil {
		return 0, err
	}
	r, _, _ := purego.SyscallN(p.addr, args...)
	return r, nil
}

// Call calls a function that returns a CUresult. The error wraps the Result and names the function.
//
//go:uintptrescapes
func (p *Proc) Call(args ...uintptr) error {
	r, err := p.Invoke(args...)
	if err != nil {
		return err
	}
	// The driver returns a 32-bit enum. The upper half of the register is undefined.
	if res := Result(uint32(r)); res != Success {
		return fmt.Errorf("%s: %w", p.name, res)
	}
	return nil
}
