package graphir_test

import (
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
)

// Memory operations are refused by name if an artifact has them in a form that no compiler writes, or waits that could hang.
func TestMemoryOperations(t *testing.T) {
	at := graphir.Pointer{Index: 3, Offset: 8} // of 512 bytes
	write := graphir.MemOp{Operation: 2, At: at, Value: 5}
	spec := func(m *graphir.MemOpsNode) *graphir.Spec {
		s := handmade()
		s.Graphs[0].Nodes[4] = graphir.Node{Type: graphir.NodeMemOps, Params: m}
		return s
	}
	for i, ops := range [][]graphir.MemOp{
		{write},
		{write, {Operation: 1, At: at, Value: 5, Flags: 1}, {Operation: 1, At: at, Value: 4}, {Operation: 1, At: at, Value: 4, Flags: 2}, {Operation: 1, At: at, Value: 5, Flags: 3}},
		{{Operation: 5, At: at, Value: 3}, {Operation: 4, At: at, Value: ^uint64(0)}}, // 3 comes after the largest number
	} {
		s := spec(graphir.NewMemOps(ops))
		data, err := graphir.Encode(s)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if back, err := graphir.Decode(data); err != nil || !graphir.Equal(s, back) {
			t.Errorf("%d: decoded again: %v", i, err)
		}
	}
	change := func(f func(m *graphir.MemOpsNode)) *graphir.MemOpsNode {
		m := graphir.NewMemOps([]graphir.MemOp{write})
		f(m)
		return m
	}
	for want, m := range map[string]*graphir.MemOpsNode{
		"0 memory operations, not 1 to 255":                                 graphir.NewMemOps(nil),
		"256 memory operations, not 1 to 255":                               graphir.NewMemOps(make([]graphir.MemOp, 256)),
		"operation 0 has the unknown type 6":                                graphir.NewMemOps([]graphir.MemOp{{Operation: 6, At: at}}),
		"operation 0 has the unknown flags 0x2":                             graphir.NewMemOps([]graphir.MemOp{{Operation: 2, At: at, Flags: 2}}),
		"operation 0 has a value beyond 32 bits":                            graphir.NewMemOps([]graphir.MemOp{{Operation: 2, At: at, Value: 1 << 32}}),
		"operation 0 waits for a value":                                     graphir.NewMemOps([]graphir.MemOp{{Operation: 1, At: at, Value: 5}, write}),
		"operation 1 waits for a value":                                     graphir.NewMemOps([]graphir.MemOp{write, {Operation: 1, At: at, Value: 6}}),
		"ops[0]: bytes 510+4 of alloc 3":                                    graphir.NewMemOps([]graphir.MemOp{{Operation: 2, At: graphir.Pointer{Index: 3, Offset: 510}}}),
		"alloc 9 of 4":                                                      graphir.NewMemOps([]graphir.MemOp{{Operation: 2, At: graphir.Pointer{Index: 9}}}),
		"40 bytes and 1 relocations, for 0 memory operations":               change(func(m *graphir.MemOpsNode) { m.Params = m.Params[:40] }),
		"48 bytes and 0 relocations, for 1 memory operations":               change(func(m *graphir.MemOpsNode) { m.Relocations = nil }),
		"its address has no relocation":                                     change(func(m *graphir.MemOpsNode) { m.Relocations[0].Offset = 32 }),
		"bytes beside its operation, address, value and flags are not zero": change(func(m *graphir.MemOpsNode) { m.Params[40] = 1 }),
	} {
		err := spec(m).Validate()
		var invalid *graphir.ValidationError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
