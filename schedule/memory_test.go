package schedule

import (
	"math/rand/v2"
	"testing"
)

// TestMemory allocates and releases at random: blocks never overlap, bytes are conserved, freeing all frees every partition.
func TestMemory(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := NewMemory(16 * PartitionBytes)
		var live []Block
		overlaps := func(b Block) bool {
			for _, o := range live {
				if o.Partition == b.Partition && b.Offset < o.Offset+o.Size && o.Offset < b.Offset+b.Size {
					return true
				}
			}
			return false
		}
		for range 500 {
			if len(live) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(live))
				if err := m.Release(live[i]); err != nil {
					t.Fatal(err)
				}
				if err := m.Release(live[i]); err == nil {
					t.Fatal("a second release succeeds")
				}
				live = append(live[:i], live[i+1:]...)
				continue
			}
			size := 1 + rng.Int64N(int64([]int{regularUnit, regularLarge, PartitionBytes}[rng.IntN(3)]))
			b, err := m.Alloc(rng.IntN(5), size)
			if err != nil {
				continue
			}
			if b.Size < size || b.Offset+b.Size > PartitionBytes || overlaps(b) {
				t.Fatalf("block %+v for %d bytes overlaps or is too small", b, size)
			}
			live = append(live, b)
		}
		sum := int64(0)
		for _, b := range live {
			sum += b.Size
		}
		if sum != m.InUse() {
			t.Fatalf("%d bytes in use, blocks sum to %d", m.InUse(), sum)
		}
		for owner := range 5 {
			m.ReleaseOwner(owner)
		}
		if m.Free() != 16 || m.InUse() != 0 || m.Waste() != 0 {
			t.Fatalf("after releasing all: %d free, %d in use, %d wasted", m.Free(), m.InUse(), m.Waste())
		}
	}
}

// TestMemoryPacksByOwner: evicting one model frees whole partitions although another was loaded in between.
func TestMemoryPacksByOwner(t *testing.T) {
	m := NewMemory(4 * PartitionBytes)
	for range 50 {
		for owner := range 2 {
			if _, err := m.Alloc(owner, regularUnit); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m.Free() != 2 {
		t.Fatalf("%d partitions free, want 2", m.Free())
	}
	m.ReleaseOwner(0)
	if m.Free() != 3 {
		t.Errorf("%d partitions free after eviction, want 3", m.Free())
	}
}

func TestMemorySizes(t *testing.T) {
	m := NewMemory(8 * PartitionBytes)
	for _, c := range []struct{ ask, get int64 }{
		{1, regularUnit}, {regularUnit, regularUnit}, {regularUnit + 1, irregularUnit}, {irregularUnit, irregularUnit},
		{irregularUnit + 1, regularLarge}, {regularLarge + 1, 2 * irregularUnit}, {33 << 20, 64 << 20}, {PartitionBytes, PartitionBytes},
	} {
		b, err := m.Alloc(0, c.ask)
		if err != nil || b.Size != c.get {
			t.Errorf("asked %d, got %d (%v), want %d", c.ask, b.Size, err, c.get)
		}
	}
	for _, size := range []int64{0, -1, PartitionBytes + 1} {
		if _, err := m.Alloc(0, size); err == nil {
			t.Errorf("allocating %d bytes succeeds", size)
		}
	}
}
