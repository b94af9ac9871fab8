package interpose

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// Each mapping of a multicast object and of memory bound to one is recorded as such, whichever of the calls came first, and no other.
func TestMulticastMemory(t *testing.T) {
	t.Setenv("SIMGPU_DEVICES", "2")
	t.Setenv("SIMGPU_MULTICAST", "1")
	recs, r := record(t, Config{}, 0, simulated(t), build(t, "build/test/multicast"))
	reasons := map[string]string{"own": "", "shared": "cuMulticastBindMem: ", "object": "cuMulticastCreate: "}
	got := map[uint32]string{}
	for _, m := range of[*trace.Multicast](recs) {
		if got[m.Alloc] != "" {
			t.Errorf("allocation %d was recorded twice", m.Alloc)
		}
		got[m.Alloc] = m.Reason
	}
	n := uint32(0)
	for s := bufio.NewScanner(strings.NewReader(r.stdout)); s.Scan(); n++ {
		var what string
		var id uint32
		if _, err := fmt.Sscan(s.Text(), &what, &id); err != nil || id != n {
			t.Fatalf("line %q: %v", s.Text(), err)
		}
		if want := reasons[what]; (want == "") != (got[id] == "") || !strings.HasPrefix(got[id], want) {
			t.Errorf("allocation %d is %s memory, recorded as %q", id, what, got[id])
		}
	}
	if allocs := of[*trace.Alloc](recs); len(allocs) != int(n) || n != 14 || len(got) != 5 {
		t.Errorf("%d allocations, of which %d have a multicast object; the program made %d", len(allocs), len(got), n)
	}
}
