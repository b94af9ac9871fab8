package restore

import (
	"encoding/binary"
	"testing"

	"medusa/graphir"
)

// A KV cache is one allocation of tens of gigabytes: no pointer may lose the upper half of its offset, whichever way it
// takes to an address.
func TestPointersBeyond4GiB(t *testing.T) {
	const base, offset = 0x7f00_0000_0000, 5<<32 + 24
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Size: 64 << 30}},
		Globals:     []graphir.Global{{Name: "state", Size: 64 << 30}},
	}
	m := &memory{spec: spec, base: make([]uint64, spec.Objects())}
	for i := range m.base {
		m.base[i] = base
	}
	for _, space := range []graphir.Space{graphir.SpaceAlloc, graphir.SpaceGlobal} {
		p := graphir.Pointer{Offset: offset, Space: space}
		if at, err := m.address(p); err != nil || at != base+offset {
			t.Errorf("address of %s: %#x, %v; want %#x", p, at, err, uint64(base+offset))
		}
		var data [16]byte
		if err := m.patch(data[:], []graphir.Fixup{{Offset: 8, Pointer: p}}); err != nil {
			t.Fatal(err)
		}
		if at := binary.LittleEndian.Uint64(data[8:]); at != base+offset {
			t.Errorf("pointer to %s in memory: %#x, want %#x", p, at, uint64(base+offset))
		}
	}
}
