package rebuild

import (
	"fmt"
	"unsafe"

	"medusa/graphir"
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

// play makes the calls of a sheet in one call of the interposer's player: the cost of entering C is paid once a sheet, not once
// a driver call.
func (s *sheet) play(spec *graphir.Spec) error {
	var addrs [cuda.Entries]uintptr
	calls := s.program.calls
	for i := range calls {
		c := s.program.steps[i].call
		if addrs[c] == 0 {
			var err error
			if addrs[c], err = c.Addr(); err != nil {
				return &playError{s.label(spec, i), s.program.describe(i), err}
			}
		}
		calls[i].Fn = uint64(addrs[c])
	}
	var failed uintptr
	r, err := live.Play.Invoke(uintptr(unsafe.Pointer(unsafe.SliceData(calls))), uintptr(len(calls)), uintptr(unsafe.Pointer(&failed)))
	if err != nil {
		return &playError{s.label(spec, 0), "medusa_play", err}
	}
	if res := cuda.Result(uint32(r)); res != cuda.Success {
		step := fmt.Sprintf("step %d of %d", failed, len(calls))
		if failed < uintptr(len(calls)) {
			step = s.program.describe(int(failed))
		}
		return &playError{s.label(spec, int(failed)), step, res}
	}
	return nil
}

// label names the graph that a call of the sheet belongs to.
func (s *sheet) label(spec *graphir.Spec, call int) string {
	i := 0
	// mutant: label of a failed call
	for i < len(s.graphs)-1 && call >= s.graphs[i].calls {
		i++
	}
	return spec.Graphs[s.graphs[i].graph].Label
}
