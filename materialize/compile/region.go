package compile

import (
	"medusa/graphir"
	"medusa/materialize/recording"
)

// placeOf returns the allocation's address if it lay in the region. Only memory whose place repeats counts.
func (r *run) placeOf(a recording.Allocation) uint64 {
	switch a.Kind {
	case graphir.AllocDevice, graphir.AllocPitch, graphir.AllocVMM:
		if r.Region.Contains(a.Addr, a.Size) {
			return a.Addr
		}
	}
	return 0
}
