package rebuild

import (
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/memory"
)

// attribute is the value that an attribute of a kernel had.
type attribute struct {
	of    resolved
	id    cuda.FunctionAttribute
	value int
}

// apply puts the recorded function attributes in force, such as the dynamic shared memory above 48 KiB that the skipped warm-up
// would have asked for. A library's kernel gets them as well: the engine's later launches name it.
func (r *resolver) apply(at resolved, attrs []graphir.FuncAttr) error {
	for _, a := range attrs {
		id := cuda.FunctionAttribute(a.ID)
		// mutant: attribute of a library's kernel
		if at.kernel != 0 {
			if err := r.set(resolved{kernel: at.kernel}, id, a.Value); err != nil {
				return err
			}
		}
		if err := r.set(resolved{function: at.function}, id, a.Value); err != nil {
			return err
		}
	}
	return nil
}

// set gives a function, or a library's kernel, a value, and keeps the one that it replaces.
func (r *resolver) set(of resolved, id cuda.FunctionAttribute, value int64) error {
	now, err := of.attribute(id)
	if err != nil {
		return fmt.Errorf("read attribute %d: %w", id, err)
	}
	if int64(now) == value {
		return nil
	}
	// mutant: attribute of a function
	if err := of.setAttribute(id, int(value)); err != nil {
		return fmt.Errorf("set attribute %d to %d: %w", id, value, err)
	}
	r.before = append(r.before, attribute{of, id, now})
	return nil
}

// putAttributesBack gives kernels the attributes that they had.
func putAttributesBack(before []attribute) error {
	for _, a := range slices.Backward(before) {
		if err := a.of.setAttribute(a.id, a.value); err != nil {
			return &memory.SpoiltError{Cause: fmt.Errorf("set attribute %d to %d: %w", a.id, a.value, err)}
		}
	}
	return nil
}

func (k resolved) attribute(id cuda.FunctionAttribute) (int, error) {
	if k.kernel == 0 {
		return k.function.Attribute(id)
	}
	device, err := cuda.CurrentDevice()
	if err != nil {
		return 0, err
	}
	return k.kernel.Attribute(id, device)
}

func (k resolved) setAttribute(id cuda.FunctionAttribute, value int) error {
	if k.kernel == 0 {
		return k.function.SetAttribute(id, value)
	}
	device, err := cuda.CurrentDevice()
	if err != nil {
		return err
	}
	return k.kernel.SetAttribute(id, value, device)
}
