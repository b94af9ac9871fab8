package memory

import (
	"bytes"
	"encoding/binary"
	"testing"

	"medusa/graphir"
	"medusa/restore/live"
)

// A KV cache is one allocation of tens of gigabytes: no pointer may lose the upper half of its offset, whichever way it
// takes to an address.
func TestPointersBeyond4GiB(t *testing.T) {
	const base, offset = 0x7f00_0000_0000, 5<<32 + 24
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Size: 64 << 30}},
		Globals:     []graphir.Global{{Name: "state", Size: 64 << 30}},
	}
	m := &Map{Spec: spec, Base: make([]uint64, spec.Objects())}
	for i := range m.Base {
		m.Base[i] = base
	}
	for _, space := range []graphir.Space{graphir.SpaceAlloc, graphir.SpaceGlobal} {
		p := graphir.Pointer{Offset: offset, Space: space}
		if at, err := m.Address(p); err != nil || at != base+offset {
			t.Errorf("address of %s: %#x, %v; want %#x", p, at, err, uint64(base+offset))
		}
		var data [16]byte
		if err := m.Patch(data[:], []graphir.Relocation{{Offset: 8, Pointer: p}}); err != nil {
			t.Fatal(err)
		}
		if at := binary.LittleEndian.Uint64(data[8:]); at != base+offset {
			t.Errorf("pointer to %s in memory: %#x, want %#x", p, at, uint64(base+offset))
		}
	}
}

// twoAllocations is a spec whose first allocation exists in this process and whose second does not.
func twoAllocations() *Map {
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Size: 64}, {Size: 64}}}
	return engineMap(spec, []live.Alloc{{Addr: 0x1000, Size: 64, Live: 1}, {Addr: 0x2000, Size: 64}, {Addr: 0x3000, Size: 64, Live: 1}})
}

// Memory that the engine has freed has no address, even if it has another owner by now, and a pointer there is an
// error.
func TestEngineMemory(t *testing.T) {
	m := twoAllocations()
	if at, err := m.Address(graphir.Pointer{Index: 0, Offset: 8}); err != nil || at != 0x1008 {
		t.Errorf("pointer into the first: %#x, %v", at, err)
	}
	if at, err := m.Address(graphir.Pointer{Index: 1, Offset: 8}); err == nil {
		t.Errorf("pointer into what was freed: %#x", at)
	}
}

// Resolving writes to a copy: the same contents are compared, filled again and restored in another place later.
func TestResolvedContent(t *testing.T) {
	saved := bytes.Repeat([]byte{0xab}, 24)
	c := &graphir.Content{Data: bytes.Clone(saved), Relocations: []graphir.Relocation{{Offset: 8, Pointer: graphir.Pointer{Offset: 16}}}}
	got, err := twoAllocations().Content(c)
	if want := append(append(bytes.Clone(saved[:8]), 0x10, 0x10, 0, 0, 0, 0, 0, 0), saved[16:]...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("resolved %x, %v; want %x", got, err, want)
	}
	if !bytes.Equal(c.Data, saved) {
		t.Errorf("saved contents are %x after resolving", c.Data)
	}
}

// Mappings that the engine made have to lie side by side if they did when recorded.
func TestEngineChains(t *testing.T) {
	mapping := graphir.Allocation{Kind: graphir.AllocVMM, Owner: graphir.OwnerEngine, Size: 0x100, Live: true}
	spec := &graphir.Spec{Allocations: []graphir.Allocation{mapping, mapping}}
	spec.Allocations[1].ContiguousTo = 1
	for at, fits := range map[uint64]bool{0x1100: true, 0x1200: false, 0xf00: false} {
		m := &Map{Spec: spec, Base: []uint64{0x1000, at}}
		if err := m.checkContiguous(); (err == nil) != fits {
			t.Errorf("mappings at 0x1000 and %#x: %v", at, err)
		}
	}
}
