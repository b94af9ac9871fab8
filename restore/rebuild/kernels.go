package rebuild

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/live"
)

// kernelError says which kernel of the kernel-name table could not be resolved in this process.
type kernelError struct {
	kernel string
	module string
	cause  error
}

func (e *kernelError) Error() string {
	return fmt.Sprintf("resolve kernel %s in %s: %v", e.kernel, e.module, e.cause)
}

// Unwrap returns the cause.
func (e *kernelError) Unwrap() error { return e.cause }

// resolver finds kernels by module identity and mangled name. A name alone is not enough: two modules may hold kernels
// of the same name.
type resolver struct {
	spec     *graphir.Spec
	loaded   []live.Module
	hidden   []hiddenModule
	reloaded []live.Module     // from their images
	copies   map[uint64]string // handles of these, and the sources of their images
	found    []KernelFound
	used     []uint64    // handles of modules and libraries that something was found in
	before   []attribute // of the engine's kernels, which recorded ones replace
}

// hiddenModule is a module that only a launched function led to.
type hiddenModule struct {
	handle    uint64
	functions map[string]cuda.Function
	names     []string // sorted
}

// newResolver reads the modules that the process has loaded by now, triggering layers included.
func newResolver(spec *graphir.Spec) (*resolver, error) {
	loaded, err := live.Modules()
	if err != nil {
		return nil, err
	}
	hidden, err := modulesOfTriggers(loaded)
	if err != nil {
		return nil, err
	}
	return &resolver{spec: spec, copies: map[uint64]string{}, loaded: loaded, hidden: hidden}, nil
}

// modulesOfTriggers enumerates the modules behind the functions launched in trigger scopes (paper §5): one kernel of
// a module leads to all others. Modules whose load was seen are left out.
func modulesOfTriggers(loaded []live.Module) ([]hiddenModule, error) {
	launched, err := live.TriggerFunctions()
	if err != nil {
		return nil, err
	}
	seen := make(map[cuda.Module]bool)
	var libraries []cuda.LibraryHandle
	for _, m := range loaded {
		if m.IsLibrary == 0 {
			seen[cuda.Module(m.Handle)] = true
		} else {
			libraries = append(libraries, cuda.LibraryHandle(m.Handle))
		}
	}
	var modules []hiddenModule
	for _, handle := range launched {
		f := cuda.Function(handle)
		// A launch takes a CUkernel in the place of a CUfunction; only its library knows it.
		kernel := cuda.Kernel(handle)
		isKernel, err := isLibraryKernel(kernel)
		if err != nil {
			return nil, err
		}
		if isKernel {
			if f, err = kernel.Function(); err != nil {
				return nil, err
			}
		}
		m, err := f.Module()
		if err != nil {
			return nil, err
		}
		if seen[m] {
			continue
		}
		seen[m] = true
		name, err := f.Name()
		if err != nil {
			return nil, err
		}
		known, err := inLibrary(f, name, libraries)
		if err != nil {
			return nil, err
		}
		if known {
			continue
		}
		h, err := enumerate(m)
		if err != nil {
			return nil, err
		}
		// mutant: hidden module
		modules = append(modules, h)
	}
	return modules, nil
}

// isLibraryKernel tells a CUkernel from a CUfunction. A driver too old for the question has no CUkernel that could be
// launched in a function's place.
func isLibraryKernel(k cuda.Kernel) (bool, error) {
	_, err := k.Library()
	var missing *cuda.MissingError
	if errors.Is(err, cuda.InvalidHandle) || errors.Is(err, cuda.InvalidValue) || errors.As(err, &missing) {
		return false, nil
	}
	return err == nil, err
}

// inLibrary reports whether one of the libraries made the function. Asking each for its module would tell as well, and
// would load every library that is not in use.
func inLibrary(f cuda.Function, name string, libraries []cuda.LibraryHandle) (bool, error) {
	for _, l := range libraries {
		kernel, err := l.Kernel(name)
		if errors.Is(err, cuda.NotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		own, err := kernel.Function()
		if err != nil {
			return false, err
		}
		if own == f {
			return true, nil
		}
	}
	return false, nil
}

func enumerate(m cuda.Module) (hiddenModule, error) {
	functions, err := m.Functions()
	if err != nil {
		return hiddenModule{}, err
	}
	h := hiddenModule{handle: uint64(m), functions: make(map[string]cuda.Function, len(functions))}
	for _, f := range functions {
		name, err := f.Name()
		if err != nil {
			return hiddenModule{}, err
		}
		h.functions[name] = f
		h.names = append(h.names, name)
	}
	sort.Strings(h.names)
	return h, nil
}

// resolve returns the function of every kernel that a graph uses, with the recorded attributes in force; entries of
// unused kernels are 0.
func (r *resolver) resolve() ([]cuda.Function, error) {
	functions := make([]cuda.Function, len(r.spec.Kernels))
	for i, used := range r.spec.UsedKernels() {
		if !used {
			continue
		}
		k := r.spec.Kernels[i]
		at, err := r.findOrReload(k)
		if err == nil {
			err = checkLayout(at.function, k.Params)
		}
		if err == nil {
			err = r.apply(at, k.Attrs)
		}
		if err != nil {
			return nil, &kernelError{k.Name, r.describe(r.spec.Modules[k.Module]), err}
		}
		functions[i] = at.function
		r.used = append(r.used, at.module)
		r.found = append(r.found, r.foundAs(k, at.module))
	}
	return functions, nil
}

// resolved is a kernel in this process.
type resolved struct {
	function cuda.Function
	kernel   cuda.Kernel // a library's
	module   uint64      // handle of the module or library that it was found in
}

// findOrReload looks in the modules that the process has loaded, triggering layers included, and then loads the kernel's own
// from its image: a module that the engine loaded has the state that the engine gave it.
func (r *resolver) findOrReload(k graphir.Kernel) (resolved, error) {
	at, err := r.find(k)
	// mutant: kernels from images
	if module := &r.spec.Modules[k.Module]; errors.Is(err, errNotLoaded) && module.Kind != graphir.ModuleHidden {
		if reloadErr := r.reload(k.Module); reloadErr != nil {
			return at, fmt.Errorf("%w; load it again: %w", err, reloadErr)
		}
		return r.find(k)
	}
	return at, err
}

// errNotLoaded: a module whose load was seen when it was recorded, and was not in this process.
var errNotLoaded = errors.New("module is not loaded")

// find returns the kernel from the one module that is its own.
func (r *resolver) find(k graphir.Kernel) (resolved, error) {
	module := r.spec.Modules[k.Module]
	if module.Kind == graphir.ModuleHidden {
		return r.findHidden(module, k)
	}
	for i := range r.loaded {
		m := &r.loaded[i]
		// mutant: module identity beside the kernel's name
		if !sameImage(&module, m) {
			continue
		}
		at, err := resolved{module: m.Handle}, error(nil)
		if m.IsLibrary == 0 {
			at.function, err = cuda.Module(m.Handle).Function(k.Name)
		} else if at.kernel, err = cuda.LibraryHandle(m.Handle).Kernel(k.Name); err == nil {
			at.function, err = at.kernel.Function()
		}
		return at, err
	}
	return resolved{}, fmt.Errorf("%w in this process (%d are)", errNotLoaded, len(r.loaded))
}

// findHidden looks for the module by the names of all its functions. Modules with equal names are told apart by the kernel's
// parameter layout; if that is equal too, findHidden fails.
func (r *resolver) findHidden(module graphir.Module, k graphir.Kernel) (resolved, error) {
	var found []resolved
	for _, h := range r.hidden {
		if f, ok := h.functions[k.Name]; ok && slices.Equal(h.names, module.Functions) && checkLayout(f, k.Params) == nil {
			found = append(found, resolved{function: f, module: h.handle})
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return resolved{}, fmt.Errorf("no triggering kernel led to the module (%d hidden modules found)", len(r.hidden))
	}
	return resolved{}, fmt.Errorf("%d hidden modules have the same function names", len(found))
}

// sameImage compares by the image's hash, or by the place of the image in its shared object. If that is another build, as
// users may allow, the image may still be the same.
func sameImage(want *graphir.Module, got *live.Module) bool {
	if (got.IsLibrary != 0) != (want.Kind == graphir.ModuleLibrary) || want.ImageSize != got.ImageSize {
		return false
	}
	if got.ImageSHA256 == ([32]byte{}) {
		if want.BuildID == got.Build() {
			// mutant: place of an image in a build
			return want.DSOOffset == got.DSOOffset
		}
		got.Hash()
	}
	return want.ImageSHA256 != ([32]byte{}) && want.ImageSHA256 == got.ImageSHA256
}

// checkLayout compares the kernel's parameters with the recorded ones: a rebuilt library may keep a name and change
// the kernel's parameters.
func checkLayout(f cuda.Function, params []graphir.Param) error {
	for i, p := range params {
		offset, size, err := f.ParamInfo(i)
		if err != nil {
			return fmt.Errorf("read parameter %d of %d: %w", i, len(params), err)
		}
		if offset != uint64(p.Offset) || size != uint64(p.Size) {
			return fmt.Errorf("compare parameter %d: %d bytes at offset %d when recorded, %d at %d now", i, p.Size, p.Offset, size, offset)
		}
	}
	if _, _, err := f.ParamInfo(len(params)); !errors.Is(err, cuda.InvalidValue) {
		return fmt.Errorf("compare parameters: more than the recorded %d (%v)", len(params), err)
	}
	return nil
}

func (r *resolver) describe(m graphir.Module) string {
	switch {
	case m.Kind == graphir.ModuleHidden:
		return fmt.Sprintf("a hidden module of %d functions", len(m.Functions))
	case m.DSO != "":
		return fmt.Sprintf("module %x of %s", m.ImageSHA256[:6], m.DSO)
	}
	return fmt.Sprintf("module %x", m.ImageSHA256[:6])
}
