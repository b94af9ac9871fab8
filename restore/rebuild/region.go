package rebuild

import (
	"bytes"
	"fmt"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/live"
	"medusa/restore/memory"
)

var procExactPlace = cuda.Process("medusa_exact_place")

// placeExact makes a graph-owned allocation at its recorded address. ok is false if that is impossible: the region has another
// base, or the place is taken. Any place is good then, because pointers are relocated one by one.
func placeExact(a graphir.Allocation) (addr uint64, ok bool) {
	// mutant: capture-phase memory at its recorded place
	if a.Address == 0 {
		return 0, false
	}
	r, err := procExactPlace.Invoke(uintptr(a.Address), uintptr(a.Size))
	return a.Address, err == nil && cuda.Result(uint32(r)) == cuda.Success
}

// addresses says how this process's memory lies against the recording's.
type addresses struct {
	exact bool
	moved int    // allocations that pointers lead to and that lie elsewhere
	why   string // if not exact
}

// compareAddresses compares base addresses. A pointer's word is its allocation's base plus an offset, so if every base equals the
// recorded one, every word that is written equals the recorded word.
func compareAddresses(m *memory.Map) (addresses, error) {
	if m.Spec.Region == (graphir.Region{}) {
		return addresses{why: "the artifact has no addresses"}, nil
	}
	var out addresses
	wanted := m.Spec.Referenced()
	for i, a := range m.Spec.Allocations {
		if wanted[i] && a.Address != 0 && m.Base[i] != a.Address {
			out.moved++
		}
	}
	if out.moved == 0 {
		out.exact = true
		return out, nil
	}
	r, err := live.Region()
	if err != nil {
		return out, err
	}
	text, _, _ := bytes.Cut(r.Reason[:], []byte{0})
	switch {
	case r.State == contract.ExactStateRefused:
		out.why = fmt.Sprintf("base %#x: %s", r.Base, text)
	case r.State != contract.ExactStateOn:
		out.why = "not asked for"
	case r.Base != m.Spec.Region.Base:
		out.why = fmt.Sprintf("base %#x, not %#x", r.Base, m.Spec.Region.Base)
	default:
		out.why = fmt.Sprintf("%d allocations lie elsewhere", out.moved)
	}
	return out, nil
}
