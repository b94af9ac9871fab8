package materialize

import (
	"context"
	"errors"
	"slices"

	"medusa/graphir"
	"medusa/interpose"
)

// recordPlaced makes run A with device memory in a region (docs/exact-addresses.md). An engine that does what memory of a
// region cannot, or that does not reach ready there, is recorded with memory where the driver puts it: its artifact has no
// addresses. Each attempt takes another region, so that a constant that looked like an address once does not again.
func (e *engine) recordPlaced(ctx context.Context, attempt int, kvBytes []uint64) ([]*Recording, error) {
	region := interpose.DefaultRegion
	region.Base += uint64(attempt-1) * region.Size
	a, err := e.record(ctx, "A", "record", placement{region: region}, kvBytes)
	var failed *EngineError
	limited := slices.ContainsFunc(a, func(r *Recording) bool { return len(r.limits) > 0 })
	if errors.As(err, &failed) || err == nil && limited {
		return e.record(ctx, "A", "record", placement{}, kvBytes)
	}
	return a, err
}

// placeOf returns the allocation's address where it lay in the region. Only memory whose place repeats counts.
func (r *Recording) placeOf(a allocation) uint64 {
	switch a.kind {
	case graphir.AllocDevice, graphir.AllocPitch, graphir.AllocVMM:
		if r.region.Contains(a.addr, a.size) {
			return a.addr
		}
	}
	return 0
}
