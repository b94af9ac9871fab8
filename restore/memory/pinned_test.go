package memory

import (
	"testing"

	"medusa/graphir"
	"medusa/restore/live"
)

// Page-locked memory may come in any order if no referenced memory has its size.
func TestPinnedMemoryInAnyOrder(t *testing.T) {
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 100, Live: true},
			{Kind: graphir.AllocPinned, Owner: graphir.OwnerEngine, Size: 24, Live: true},
			{Kind: graphir.AllocPinned, Owner: graphir.OwnerEngine, Size: 32, Live: true},
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 200, Live: true},
		},
		Sequence: []graphir.Step{{Alloc: 0}, {Alloc: 1}, {Alloc: 2}, {Alloc: 3}},
		Tensors:  []graphir.Tensor{{Name: "host", At: graphir.Pointer{Index: 2}, Size: 8}},
	}
	device := func(size uint64) live.Alloc {
		return live.Alloc{Addr: size << 20, Size: size, Kind: uint32(graphir.AllocDevice), Live: 1}
	}
	pinned := func(size uint64) live.Alloc {
		return live.Alloc{Addr: size << 20, Size: size, Kind: uint32(graphir.AllocPinned), Live: 1}
	}
	for _, row := range []struct {
		name   string
		allocs []live.Alloc
		freed  []int64 // behind the allocations
		want   string
	}{
		{"as recorded", []live.Alloc{device(100), pinned(24), pinned(32), device(200)}, nil, ""},
		{"missing", []live.Alloc{device(100), pinned(32), device(200)}, nil, ""},
		{"earlier", []live.Alloc{pinned(24), device(100), pinned(32), device(200)}, nil, ""},
		{"more", []live.Alloc{pinned(24), device(100), pinned(24), pinned(32), pinned(24), device(200), pinned(24)}, nil, ""},
		{"of another size", []live.Alloc{device(100), pinned(48), pinned(32), device(200)}, nil, ""},
		{"freed", []live.Alloc{device(100), pinned(24), pinned(32), device(200)}, []int64{-2}, ""},
		{"that something refers to", []live.Alloc{device(100), pinned(32), pinned(32), device(200)}, nil, "step 2 was #3 (device, 200 bytes) when recorded, is #3 (pinned"},
		{"that something refers to, later", []live.Alloc{device(100), device(200), pinned(32)}, nil, "step 1 was #2"},
		{"of another order of device memory", []live.Alloc{device(200), pinned(32), pinned(24), device(100)}, nil, "step 0 was #0"},
	} {
		var steps []int64
		for i := range row.allocs {
			steps = append(steps, int64(i))
		}
		byIndex, recorded, err := align(spec, append(steps, row.freed...), row.allocs, false)
		checkSequence(t, row.name, err, row.want)
		if err == nil && (byIndex[0].Size != 100 || byIndex[2].Size != 32 || byIndex[3].Size != 200) {
			t.Errorf("%s: allocations by index %v", row.name, byIndex)
		}
		if row.name == "as recorded" && recorded != nil {
			t.Errorf("%s: memory that nothing refers to is left out: %v", row.name, recorded)
		}
	}
}
