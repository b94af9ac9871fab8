package rebuild

import (
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/restore/live"
)

// PlayError says which driver call of a graph's program failed.
type PlayError struct {
	Graph string
	Step  string // driver function, with the node if it concerns one
	Cause error  // wraps the cuda.Result
}

func (e *PlayError) Error() string {
	return fmt.Sprintf("build graph %s: %s: %v", e.Graph, e.Step, e.Cause)
}

// Unwrap returns the cause.
func (e *PlayError) Unwrap() error { return e.Cause }

// play runs the program in one call of the interposer's player: the cost of entering C is paid once a graph, not once
// a driver call.
func (p *program) play(graph string) error {
	var addrs [cuda.Entries]uintptr
	for i := range p.calls {
		c := p.steps[i].call
		if addrs[c] == 0 {
			var err error
			if addrs[c], err = c.Addr(); err != nil {
				return &PlayError{graph, p.describe(i), err}
			}
		}
		p.calls[i].Fn = uint64(addrs[c])
	}
	var failed uintptr
	r, err := live.Play.Invoke(uintptr(unsafe.Pointer(unsafe.SliceData(p.calls))), uintptr(len(p.calls)), uintptr(unsafe.Pointer(&failed)))
	if err != nil {
		return &PlayError{graph, "medusa_play", err}
	}
	if res := cuda.Result(uint32(r)); res != cuda.Success {
		if failed >= uintptr(len(p.calls)) {
			return &PlayError{graph, fmt.Sprintf("step %d of %d", failed, len(p.calls)), res}
		}
		return &PlayError{graph, p.describe(int(failed)), res}
	}
	return nil
}
