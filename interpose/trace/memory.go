package trace

import "medusa/internal/slab"

// Memory has the records of kernel nodes and edges, which are most of a trace, and the short lists of all records. A program that
// reads a trace graph by graph needs no new memory for each. Its zero value is ready for use.
type Memory struct {
	kernels slab.Reused[Kernel]
	edges   slab.Reused[Edge]
	small   slab.Reused[byte]
	u32s    slab.Reused[uint32]
}

// Reset takes back all records that were read into the memory. They must not be used any more.
func (m *Memory) Reset() {
	m.kernels.Reset()
	m.edges.Reset()
	m.small.Reset()
	m.u32s.Reset()
}

func (m *Memory) kernel() *Kernel {
	if m == nil {
		return &Kernel{}
	}
	return m.kernels.One()
}

func (m *Memory) edge() *Edge {
	if m == nil {
		return &Edge{}
	}
	return m.edges.One()
}

func (m *Memory) bytes(n int) []byte {
	if m == nil {
		return make([]byte, n)
	}
	return m.small.Take(n)
}

func (m *Memory) numbers(n int) []uint32 {
	if m == nil {
		return make([]uint32, n)
	}
	return m.u32s.Take(n)
}
