package materialize

import (
	"context"
	"errors"
	"slices"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/interpose"
	"medusa/kvprofile"
	"medusa/materialize/recording"
)

// recordPlaced makes record-a with device memory in a region (docs/exact-addresses.md). An engine that makes calls which memory of a
// region cannot serve, or that does not reach ready there, is recorded with memory at the driver's choice: its artifact has no
// addresses. It then calls again with the reason. Each attempt takes another region, so that a constant that looked like an address once does not again.
func (e *engine) recordPlaced(ctx context.Context, attempt int, profiles []kvprofile.Profile, again func(why string)) ([]*recording.Recording, error) {
	// mutant: addresses that a communicator would not bear
	if e.alone > 0 {
		// A communicator may hand its memory to the other ranks in a way that memory of a region cannot serve, which no run of this series shows.
		return e.record(ctx, runRecordA, contract.RunRecord, placement{}, profiles)
	}
	region := interpose.DefaultRegion
	region.Base += uint64(attempt-1) * region.Size
	a, err := e.record(ctx, runRecordA, contract.RunRecord, placement{region: region}, profiles)
	if why := unplaceable(a, err); why != "" {
		again(why)
		return e.record(ctx, runRecordA, contract.RunRecord, placement{}, profiles)
	}
	return a, err
}

// recordMoved makes record-b: with gaps, so that allocations lie elsewhere against each other, and yet in the order of record-a
// if that had a region. PyTorch's allocator takes the lower of two free blocks of the same size; if order changed, it
// would put tensors into other segments, and graphs of the two runs would not mean the same.
func (e *engine) recordMoved(ctx context.Context, attempt int, seed uint64, a []*recording.Recording, profiles []kvprofile.Profile) ([]*recording.Recording, error) {
	at := placement{gapSeed: seed}
	if slices.ContainsFunc(a, func(r *recording.Recording) bool { return r.Region == graphir.Region{} }) {
		return e.record(ctx, runRecordB, contract.RunRecord, at, profiles)
	}
	at.region = interpose.StretchedRegion
	at.region.Base += uint64(attempt-1)*at.region.Size + (1+seed%255)*regionStep
	b, err := e.record(ctx, runRecordB, contract.RunRecord, at, profiles)
	if unplaceable(b, err) != "" {
		return e.record(ctx, runRecordB, contract.RunRecord, placement{gapSeed: seed}, profiles)
	}
	return b, err
}

// The base of a region is a multiple of regionStep.
const regionStep = 2 << 20

// unplaceable returns why an engine has to be recorded with memory at the driver's choice, and nothing if it has not.
func unplaceable(ranks []*recording.Recording, err error) string {
	var failed *EngineError
	if errors.As(err, &failed) {
		return "the engine has failed"
	}
	if err != nil {
		return ""
	}
	for _, r := range ranks {
		if len(r.Limits) > 0 {
			return r.Limits[0].Reason
		}
	}
	return ""
}
