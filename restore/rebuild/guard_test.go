package rebuild

import (
	"errors"
	"math"
	"testing"

	"medusa/graphir"
	"medusa/internal/panics"
)

// A goroutine writes programs: only it can catch its panic.
func TestPanicWhileWriting(t *testing.T) {
	spec := &graphir.Spec{Graphs: []graphir.Graph{{Label: "g", Nodes: []graphir.Node{{Type: graphir.NodeKernel}}}}} // no parameters: Validate refuses such a graph
	b := testBuilder(spec)
	var panicked *panics.Error
	if _, err := b.build([][]int{{0}}); !errors.As(err, &panicked) {
		t.Errorf("got %v", err)
	}
}

// A file may state any size for a host buffer.
func TestArenaRefusesWhatNobodyHas(t *testing.T) {
	for _, size := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt - 1} {
		var a arena
		if _, err := a.bytes(size); err == nil {
			t.Errorf("%d bytes: no error", size)
			a.release()
		}
	}
}
