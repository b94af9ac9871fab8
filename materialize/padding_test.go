package materialize

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/materialize/compile"
)

// Of five runs of presumed padding one matters, if it is not zero or if it is: it is found, and named with its word's error.
func TestPaddingThatMattersIsFound(t *testing.T) {
	spec := &graphir.Spec{Graphs: []graphir.Graph{{Nodes: []graphir.Node{{Params: &graphir.KernelNode{Params: make([]byte, 40)}}}}}}
	params := spec.Graphs[0].Nodes[0].Kernel().Params
	var pads compile.Paddings
	for i := range uint32(5) {
		pads = append(pads, compile.Padding{Spec: spec, Offset: 8 * i, Size: 2, Cause: &compile.WordError{Offset: uint64(8 * i), Reason: "differs"}})
	}
	for i := range 11 {
		matters, zero := i/2, i%2 == 1 // 5: none
		var patterns [][]byte
		v, err := provePadding(pads, func() ([]*verification, error) {
			patterns = append(patterns, bytes.Clone(params))
			if matters < 5 && (params[8*matters+1] == 0) == zero {
				return nil, errors.New("other outputs")
			}
			return []*verification{{}}, nil
		})
		var word *compile.WordError
		switch {
		case matters == 5:
			// The bytes that are verified last are the artifact's.
			if err != nil || v == nil || len(patterns) != 2 || bytes.Equal(patterns[0], patterns[1]) || !bytes.Equal(patterns[1], make([]byte, 40)) {
				t.Errorf("padding that does not matter: %v after %d patterns", err, len(patterns))
			}
		case !errors.As(err, &word) || word.Offset != uint64(8*matters) || !strings.Contains(word.Reason, "no padding"):
			t.Errorf("run %d matters, zeros %v: %v", matters, zero, err)
		}
	}
	broken := errors.New("something else")
	if _, err := provePadding(pads, func() ([]*verification, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a failure that padding does not cause: %v", err)
	}
}
