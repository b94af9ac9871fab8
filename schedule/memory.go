package schedule

import (
	"fmt"
	"math/bits"
	"slices"
)

// Sizes of Torpor's device memory (appendix A.2), in bytes.
const (
	PartitionBytes = 128 << 20 // what is reserved and given back as one
	regularUnit    = 2 << 20   // regular partitions hold blocks of 2 and 20 MiB
	regularLarge   = 20 << 20
	irregularUnit  = 16 << 20 // irregular partitions hold powers of two of this, a buddy allocator
)

// Block is a piece of device memory: a virtual base and the room behind it. A parameter's address is its block's base plus
// an offset, so moving a block changes one entry of the address map.
type Block struct {
	Owner     int
	Partition int
	Offset    int64
	Size      int64 // as allocated, at least as asked
}

// Memory is the two-tier memory of one GPU in Torpor: partitions reserved at the start, blocks packed inside them by
// owner, so that evicting one model frees whole partitions and no driver allocation is made while serving.
type Memory struct {
	partitions []partition
	free       int
	asked      map[Block]int64
	inUse      int64
	asking     int64
}

type kind int

const (
	unused kind = iota
	regular
	irregular
)

// partition is a bitmap of units: 64 of 2 MiB or 8 of 16 MiB.
type partition struct {
	kind   kind
	owner  int // the first owner; others join only when nothing else is free
	taken  uint64
	blocks int
}

// NewMemory reserves size bytes, rounded down to whole partitions.
func NewMemory(size int64) *Memory {
	n := int(size / PartitionBytes)
	return &Memory{partitions: make([]partition, n), free: n, asked: map[Block]int64{}}
}

// Free is the number of wholly free partitions.
func (m *Memory) Free() int { return m.free }

// Waste is the bytes that blocks hold beyond what was asked for.
func (m *Memory) Waste() int64 { return m.inUse - m.asking }

// InUse is the bytes in blocks.
func (m *Memory) InUse() int64 { return m.inUse }

// Alloc finds a block of at least size bytes for owner: in its own partitions, then in the emptiest shared one, then in a
// free partition. It fails if size is beyond a partition or nothing fits; the caller then evicts, or counts a native
// allocation.
func (m *Memory) Alloc(owner int, size int64) (Block, error) {
	if size <= 0 || size > PartitionBytes {
		return Block{}, fmt.Errorf("allocate %d bytes: a block is 1 to %d bytes", size, int64(PartitionBytes))
	}
	k, units := shape(size)
	var own, shared []int
	for i, p := range m.partitions {
		if p.kind != k {
			continue
		}
		if p.owner == owner {
			own = append(own, i)
		} else {
			shared = append(shared, i)
		}
	}
	// Owner's partitions in order, to pack; then others', emptiest first.
	slices.SortStableFunc(shared, func(a, b int) int {
		return bits.OnesCount64(m.partitions[a].taken) - bits.OnesCount64(m.partitions[b].taken)
	})
	if b, ok := m.fit(own, owner, k, units, size); ok {
		return b, nil
	}
	for i, p := range m.partitions {
		if p.kind == unused {
			m.partitions[i] = partition{kind: k, owner: owner}
			m.free--
			b, _ := m.fit([]int{i}, owner, k, units, size)
			return b, nil
		}
	}
	if b, ok := m.fit(shared, owner, k, units, size); ok {
		return b, nil
	}
	return Block{}, fmt.Errorf("allocate %d bytes: no partition has room (%d reserved)", size, len(m.partitions))
}

// shape maps a size to the kind of partition and the number of its units: 1 or 10 regular units, or a power of two of
// irregular ones.
func shape(size int64) (kind, int) {
	switch {
	case size <= regularUnit:
		return regular, 1
	case size > irregularUnit && size <= regularLarge:
		return regular, regularLarge / regularUnit
	}
	n := int((size + irregularUnit - 1) / irregularUnit)
	return irregular, 1 << bits.Len(uint(n-1))
}

func (m *Memory) fit(in []int, owner int, k kind, units int, size int64) (Block, bool) {
	unit, count, align := int64(regularUnit), PartitionBytes/regularUnit, 1
	if k == irregular {
		unit, count, align = irregularUnit, PartitionBytes/irregularUnit, units
	}
	mask := uint64(1)<<units - 1
	for _, i := range in {
		p := &m.partitions[i]
		for at := 0; at+units <= count; at += align {
			if p.taken&(mask<<at) != 0 {
				continue
			}
			p.taken |= mask << at
			p.blocks++
			b := Block{Owner: owner, Partition: i, Offset: int64(at) * unit, Size: int64(units) * unit}
			m.asked[b] = size
			m.inUse += b.Size
			m.asking += size
			return b, true
		}
	}
	return Block{}, false
}

// Release gives b back. A partition left empty returns to the free ones, to become of either kind.
func (m *Memory) Release(b Block) error {
	size, ok := m.asked[b]
	if !ok {
		return fmt.Errorf("release block at %d+%d: not allocated (released twice?)", b.Partition, b.Offset)
	}
	delete(m.asked, b)
	m.inUse -= b.Size
	m.asking -= size
	p := &m.partitions[b.Partition]
	unit := int64(regularUnit)
	if p.kind == irregular {
		unit = irregularUnit
	}
	p.taken &^= (uint64(1)<<(b.Size/unit) - 1) << (b.Offset / unit)
	p.blocks--
	if p.blocks == 0 {
		*p = partition{}
		m.free++
	}
	return nil
}

// ReleaseOwner gives back all blocks of owner, as an eviction does.
func (m *Memory) ReleaseOwner(owner int) {
	for b := range m.asked {
		if b.Owner == owner {
			_ = m.Release(b) // listed a moment ago, so it is allocated
		}
	}
}
