package engine

import (
	"fmt"

	"medusa/internal/cuda"
	"medusa/runners/reference/marks"
)

// profile runs the largest forward there will be, over padding, and returns the bytes that it leaves for the KV cache:
// the share of the device's memory that the engine may use, less the memory in use at the forward's peak. The figures come
// from the driver and not from bookkeeping, so that whatever libraries allocate behind the engine's back counts too.
func (e *Engine) profile() (uint64, error) {
	marks.CallLog("profile-forward")
	var atPeak, after, total uint64
	err := e.eagerPrefill(e.paddedPrefill(), func(prefillOutputs) (err error) {
		atPeak, _, err = cuda.MemInfo()
		return err
	})
	if err == nil {
		after, total, err = cuda.MemInfo()
	}
	if err != nil {
		return 0, fmt.Errorf("profile KV cache: %w", err)
	}
	budget, used := uint64(e.options.Utilization*float64(total)), total-atPeak
	if used >= budget {
		return 0, fmt.Errorf("profile KV cache: %d bytes are in use at the forward's peak, %d are allowed (raise --gpu-memory-utilization)", used, budget)
	}
	marks.Profiled(marks.KVProfile{
		KVBytes: budget - used, Total: total, FreeBefore: e.freeBefore, FreeAfter: after, PeakForward: after - min(after, atPeak),
		Utilization: e.options.Utilization, ProfileTokens: int64(e.options.MaxBatchedTokens),
	})
	return budget - used, nil
}

// markGiven reports a size that the user gave as a profile without a forward: Medusa records it like any other.
func (e *Engine) markGiven(bytes uint64) error {
	after, total, err := cuda.MemInfo()
	if err != nil {
		return err
	}
	marks.Profiled(marks.KVProfile{
		KVBytes: bytes, Total: total, FreeBefore: e.freeBefore, FreeAfter: after, Utilization: e.options.Utilization,
	})
	return nil
}

// paddedPrefill has as many tokens and sequences as the largest prefill, all of them padding: it runs before there is a
// KV cache, and touches none.
func (e *Engine) paddedPrefill() *prefill {
	p := newPrefill(e.options.maxBlocks())
	sequences := e.MaxBatch()
	for i := range e.options.MaxBatchedTokens {
		p.add(0, -1, i%sequences)
	}
	for i := range sequences {
		p.finish(i, nil)
	}
	return p
}
