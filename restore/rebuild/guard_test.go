package rebuild

import (
	"errors"
	"math"
	"testing"

	"medusa/graphir"
	"medusa/internal/panics"
)

// Programs are written by a goroutine: nobody but itself can catch its panic.
func TestPanicWhileWriting(t *testing.T) {
	spec := &graphir.Spec{Graphs: []graphir.Graph{{Label: "g", Nodes: []graphir.Node{{Type: graphir.NodeKernel}}}}} // no parameters: nothing that Validate lets through
	b := testBuilder(spec)
	var panicked *panics.Error
	if _, err := b.build([][]int{{0}}); !errors.As(err, &panicked) {
		t.Errorf("got %v", err)
	}
}

// The size of a host buffer may be whatever a file says.
func TestArenaRefusesWhatNobodyHas(t *testing.T) {
	for _, size := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt - 1} {
		var a arena
		if _, err := a.bytes(size); err == nil {
			t.Errorf("%d bytes: no error", size)
			a.release()
		}
	}
}
