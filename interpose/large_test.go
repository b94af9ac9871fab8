package interpose

import (
	"fmt"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// A region has room for all memory of its device, also with gaps, and for a framework's reservations. The simulated GPU
// needs no memory of the host for memory that is never touched.
func TestRegionHoldsTheWholeDevice(t *testing.T) {
	for _, gib := range []uint64{24, 80, 141, 288} {
		for _, seed := range []uint64{0, 7} {
			t.Run(fmt.Sprintf("%d GiB, seed %d", gib, seed), func(t *testing.T) {
				region := DefaultRegion
				if seed != 0 {
					region = StretchedRegion
				}
				c := Config{Exact: region, GapSeed: seed, ExtraEnv: []string{fmt.Sprintf("SIMGPU_MEMORY=%dG", gib), "SIMGPU_COMPUTE=off"}}
				recs, r := record(t, c, 0, simulated(t), build(t, "build/test/large"), "10", "8")
				got := map[string][]uint64{}
				for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
					var name string
					var value uint64
					if _, err := fmt.Sscan(line, &name, &value); err != nil {
						t.Fatalf("line %q: %v", line, err)
					}
					got[name] = append(got[name], value)
				}
				in := func(what string, addr, size uint64) {
					if addr < region.Base || addr+size > region.Base+region.Size {
						t.Errorf("%s at %#x, %#x bytes, lies outside the region", what, addr, size)
					}
				}
				var sum uint64
				for i, addr := range got["at"] {
					in("an allocation", addr, got["size"][i])
					sum += got["size"][i]
				}
				for _, addr := range got["range"] {
					in("a range", addr, gib<<30/8*9)
				}
				if sum != (gib-1)<<30 || len(got["range"]) != 8 || got["kept"][0] != 1 || got["beyond"][0] != 2 {
					t.Errorf("allocated %#x bytes, %d ranges, kept %d, beyond the device: result %d", sum, len(got["range"]), got["kept"], got["beyond"])
				}
				if e := of[*trace.Exact](recs); len(e) != 1 || e[0].Base != region.Base {
					t.Errorf("recorded region %+v", e)
				}
			})
		}
	}
}
