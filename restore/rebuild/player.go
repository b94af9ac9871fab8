package rebuild

import (
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/restore/live"
)

// playError says which driver call of a graph's program failed.
type playError struct {
	graph string
	step  string // driver function, with the node if it concerns one
	cause error  // wraps the cuda.Result
}

func (e *playError) Error() string {
	return fmt.Sprintf("build graph %s: %s: %v", e.graph, e.step, e.cause)
}

// Unwrap returns the cause.
func (e *playError) Unwrap() error { return e.cause }

// play runs the program in one call of the interposer's player: the cost of entering C is paid once a graph, not once
// a driver call.
func (p *program) play(graph string) error {
	var addrs [cuda.Entries]uintptr
	for i := range p.calls {
		c := p.steps[i].call
		if addrs[c] == 0 {
			var err error
			if addrs[c], err = c.Addr(); err != nil {
				return &playError{graph, p.describe(i), err}
			}
		}
		p.calls[i].Fn = uint64(addrs[c])
	}
	var failed uintptr
	r, err := live.Play.Invoke(uintptr(unsafe.Pointer(unsafe.SliceData(p.calls))), uintptr(len(p.calls)), uintptr(unsafe.Pointer(&failed)))
	if err != nil {
		return &playError{graph, "medusa_play", err}
	}
	if res := cuda.Result(uint32(r)); res != cuda.Success {
		if failed >= uintptr(len(p.calls)) {
			return &playError{graph, fmt.Sprintf("step %d of %d", failed, len(p.calls)), res}
		}
		return &playError{graph, p.describe(int(failed)), res}
	}
	return nil
}
