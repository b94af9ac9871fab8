package graphir

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"medusa/graphir/graphpb"
)

// NodeMemOps waits for values in memory, and writes values.
const NodeMemOps NodeType = 12

// MemOpsNode holds the operations of a CUDA_BATCH_MEM_OP_NODE_PARAMS in their order. Params is the driver's array, MemOpBytes for each
// operation. The bytes of the addresses are zero; a relocation for each replaces them.
type MemOpsNode struct {
	Params      []byte
	Relocations []Relocation
}

// MemOp is one operation: a wait until the value at an address meets a condition, or a write of a value.
type MemOp struct {
	Operation uint32 // CUstreamBatchMemOpType
	At        Pointer
	Value     uint64
	Flags     uint32 // of a wait: the condition
}

// MemOpBytes is the size of a CUstreamBatchMemOpParams: the operation at byte 0, its address, value and flags at 8, 16 and 24.
const MemOpBytes = 48

const (
	memOpAddress = 8
	mostMemOps   = 255 // that the driver takes
)

// memOpTypes has the operations that can be restored. Barriers and flushes concern other devices.
var memOpTypes = map[uint32]struct {
	name   string
	size   uint64
	wait   bool
	values uint32 // how many values the flags have
}{1: {"wait32", 4, true, 4}, 2: {"write32", 4, false, 2}, 4: {"wait64", 8, true, 4}, 5: {"write64", 8, false, 2}}

var memOpsSize = extent{bytes: int64(unsafe.Sizeof(MemOpsNode{}))}

func init() {
	nodeTypes[NodeMemOps] = nodeType{
		name:   "mem_ops",
		has:    are[*MemOpsNode],
		size:   memOpsSize,
		buffer: true,
		lay: func(n *Node, in *bodies, at *extent, s *shape) {
			params, relocations := in.buffer(at, s)
			n.Params = &MemOpsNode{params, relocations}
		},
	}
}

// MemOps returns the parameters of a node with memory operations, and nil for any other.
func (n *Node) MemOps() *MemOpsNode {
	m, _ := n.Params.(*MemOpsNode)
	return m
}

// NewMemOps lays operations out as the driver reads them.
func NewMemOps(ops []MemOp) *MemOpsNode {
	m := &MemOpsNode{Params: make([]byte, MemOpBytes*len(ops))}
	for i, op := range ops {
		to := m.Params[MemOpBytes*i:]
		binary.LittleEndian.PutUint32(to, op.Operation)
		binary.LittleEndian.PutUint64(to[16:], op.Value)
		binary.LittleEndian.PutUint32(to[24:], op.Flags)
		m.Relocations = append(m.Relocations, Relocation{Offset: uint32(MemOpBytes*i + memOpAddress), Pointer: op.At})
	}
	return m
}

// Ops returns the operations. An operation without a relocation has no address.
func (m *MemOpsNode) Ops() []MemOp {
	out := make([]MemOp, len(m.Params)/MemOpBytes)
	for i := range out {
		from := m.Params[MemOpBytes*i:]
		out[i] = MemOp{Operation: binary.LittleEndian.Uint32(from), Value: binary.LittleEndian.Uint64(from[16:]), Flags: binary.LittleEndian.Uint32(from[24:])}
	}
	for _, f := range m.Relocations {
		if i := int(f.Offset / MemOpBytes); i < len(out) {
			out[i].At = f.Pointer
		}
	}
	return out
}

func (op MemOp) String() string {
	t, known := memOpTypes[op.Operation]
	if !known {
		t.name = fmt.Sprintf("operation(%d)", op.Operation)
	}
	return fmt.Sprintf("%s %s %#x flags=%d", t.name, op.At, op.Value, op.Flags)
}

// Obstacle returns the reason why the operations cannot be restored, or "". A wait without an end would block a check, and the engine
// after it. So a wait has to follow a write of the same node to the same bytes, with a value that ends it.
func (m *MemOpsNode) Obstacle() string {
	ops := m.Ops()
	if len(ops) == 0 || len(ops) > mostMemOps {
		return fmt.Sprintf("%d memory operations, not 1 to %d", len(ops), mostMemOps)
	}
	var written *MemOp
	for i := range ops {
		op := &ops[i]
		if why := op.Unknown(); why != "" {
			return fmt.Sprintf("operation %d %s", i, why)
		}
		t := memOpTypes[op.Operation]
		// mutant: wait for a value that nobody writes
		if t.wait && (written == nil || written.At != op.At || memOpTypes[written.Operation].size != t.size || !op.ends(written.Value)) {
			return fmt.Sprintf("operation %d waits for a value that the write before it in the node does not leave there: it may wait for ever", i)
		}
		if !t.wait {
			written = op
		}
	}
	return ""
}

// Unknown describes the part of the operation that Medusa cannot restore, or returns "".
func (op MemOp) Unknown() string {
	t, known := memOpTypes[op.Operation]
	switch {
	case !known:
		return fmt.Sprintf("has the unknown type %d", op.Operation)
	case op.Flags >= t.values:
		return fmt.Sprintf("has the unknown flags %#x", op.Flags)
	case t.size == 4 && op.Value>>32 != 0:
		return "has a value beyond 32 bits"
	}
	return ""
}

// ends reports whether a value ends a wait.
func (op *MemOp) ends(value uint64) bool {
	bits := 8 * memOpTypes[op.Operation].size
	all := ^uint64(0) >> (64 - bits)
	switch op.Flags {
	case 0: // at least, around the end of the numbers too
		return (value-op.Value)&all <= all>>1
	case 1:
		return value == op.Value
	case 2:
		return value&op.Value != 0
	}
	return ^(value|op.Value)&all != 0
}

func (m *MemOpsNode) extent() extent { return memOpsSize.with(m.Params, m.Relocations) }

func (m *MemOpsNode) pointers(visit func(Pointer)) {
	for i := range m.Relocations {
		visit(m.Relocations[i].Pointer)
	}
}

func (m *MemOpsNode) key(_ *tables, to []byte) []byte { return bufferKey(to, m.Params, m.Relocations) }

func (m *MemOpsNode) encode(_ *tables, pb *graphpb.Shape) { encodeBuffer(pb, m.Params, m.Relocations) }

func (m *MemOpsNode) collect(c *columns, at *extent) { c.buffer(at, m.Params, m.Relocations) }

func (m *MemOpsNode) clone() Params {
	return &MemOpsNode{slices.Clone(m.Params), slices.Clone(m.Relocations)}
}

func (m *MemOpsNode) writes(visit func(Pointer, uint64)) {
	for _, op := range m.Ops() {
		if t := memOpTypes[op.Operation]; !t.wait {
			visit(op.At, t.size)
		}
	}
}

func (m *MemOpsNode) validate(v *validator, path func() string) {
	ops := m.Ops()
	if len(m.Params) != MemOpBytes*len(ops) || len(m.Relocations) != len(ops) {
		v.bad(path(), "%d bytes and %d relocations, for %d memory operations", len(m.Params), len(m.Relocations), len(ops))
		return
	}
	v.relocations(m.Relocations, m.Params, path)
	for i, op := range ops {
		at := func() string { return fmt.Sprintf("%s.ops[%d]", path(), i) }
		if f := m.Relocations[i]; f.TensorMap != 0 || f.Offset != uint32(MemOpBytes*i+memOpAddress) {
			v.bad(at(), "its address has no relocation")
			return
		}
		if plain := NewMemOps(ops[i : i+1]).Params; !slices.Equal(plain, m.Params[MemOpBytes*i:][:MemOpBytes]) {
			v.bad(at(), "bytes beside its operation, address, value and flags are not zero")
		}
		// mutant: extent of a memory operation
		v.pointer(op.At, memOpTypes[op.Operation].size, at)
	}
	if why := m.Obstacle(); why != "" {
		v.bad(path(), "%s", why)
	}
}

func (m *MemOpsNode) print(t *textWriter) {
	for _, op := range m.Ops() {
		t.printf(" (%s)", op)
	}
}
