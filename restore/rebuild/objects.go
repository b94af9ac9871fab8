package rebuild

import (
	"fmt"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/live"
	"medusa/restore/memory"
)

// Objects that graphs refer to besides allocations: variables of modules, events of the engine.

// globalError says which variable of a module could not be found in this process as it was recorded.
type globalError struct {
	name, module string
	cause        error
}

func (e *globalError) Error() string {
	return fmt.Sprintf("resolve variable %s in %s: %v", e.name, e.module, e.cause)
}

// Unwrap returns the cause.
func (e *globalError) Unwrap() error { return e.cause }

// globals gives every variable that something refers to its address.
func (r *resolver) globals(m *memory.Map) error {
	wanted := r.spec.Referenced()
	for i, g := range r.spec.Globals {
		object := r.spec.Object(graphir.SpaceGlobal, uint32(i))
		if !wanted[object] {
			continue
		}
		addr, size, err := r.global(&g)
		if err == nil && size != g.Size {
			err = fmt.Errorf("%d bytes, recorded %d", size, g.Size)
		}
		if err != nil {
			return &globalError{g.Name, r.describe(r.spec.Modules[g.Module]), err}
		}
		// mutant: address of a variable
		m.Base[object] = addr
	}
	return nil
}

func (r *resolver) global(g *graphir.Global) (addr, size uint64, err error) {
	want := r.spec.Modules[g.Module]
	for i := range r.loaded {
		m := &r.loaded[i]
		if !sameImage(&want, m) {
			continue
		}
		r.used = append(r.used, m.Handle)
		find := cuda.Module(m.Handle).Global
		if m.IsLibrary != 0 {
			find = cuda.LibraryHandle(m.Handle).Global
		}
		at, size, err := find(g.Name)
		return uint64(at), size, err
	}
	return 0, 0, fmt.Errorf("module is not loaded in this process (%d are)", len(r.loaded))
}

// engineEvents returns the handles of the engine's events by index, as far as the artifact refers to them, after checking
// that this process created its events as the recorded one did.
func engineEvents(spec *graphir.Spec) ([]uint64, error) {
	if len(spec.Events) == 0 {
		return nil, nil
	}
	live, err := live.Events()
	if err != nil {
		return nil, err
	}
	handles := make([]uint64, len(spec.Events))
	for i, e := range spec.Events {
		if i >= len(live) {
			return nil, fmt.Errorf("compare events: %d were created, the artifact refers to event %d", len(live), len(spec.Events)-1)
		}
		if live[i].Flags != e.Flags || live[i].Steps != e.Step {
			return nil, fmt.Errorf("compare events: event %d has flags %#x and was created after %d allocations and frees, recorded with %#x after %d",
				i, live[i].Flags, live[i].Steps, e.Flags, e.Step)
		}
		if live[i].Live != 0 {
			handles[i] = live[i].Handle
		}
	}
	return handles, nil
}
