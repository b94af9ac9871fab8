package engine

import (
	"fmt"

	"medusa/internal/cuda"
	"medusa/runners/reference/marks"
)

// profile runs the largest forward there will be, over padding, and returns the bytes that it leaves for the KV cache:
// the share of the device's memory that the engine may use, less what is in use at the forward's peak. The memory
// comes from the driver and not from bookkeeping, so that whatever libraries allocate behind the engine's back counts too.
func (e *Engine) profile() (uint64, error) {
	marks.CallLog("profile-forward")
	p := marks.KVProfile{Utilization: e.options.Utilization, ProfileTokens: int64(e.options.MaxBatchedTokens)}
	var err error
	if p.FreeBefore, p.Total, err = cuda.MemInfo(); err != nil {
		return 0, fmt.Errorf("profile KV cache: %w", err)
	}
	atPeak := uint64(0)
	err = e.eagerPrefill(e.paddedPrefill(), func(prefillOutputs) (err error) {
		atPeak, _, err = cuda.MemInfo()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("profile KV cache: %w", err)
	}
	if p.FreeAfter, _, err = cuda.MemInfo(); err != nil {
		return 0, fmt.Errorf("profile KV cache: %w", err)
	}
	p.PeakForward = p.FreeBefore - min(p.FreeBefore, atPeak)
	budget, used := uint64(p.Utilization*float64(p.Total)), p.Total-atPeak
	if used >= budget {
		return 0, fmt.Errorf("profile KV cache: %d bytes are in use at the forward's peak, %d are allowed (raise --gpu-memory-utilization)", used, budget)
	}
	p.KVBytes = budget - used
	marks.Profiled(p)
	return p.KVBytes, nil
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
		p.finish(i, make([]int32, 0))
	}
	return p
}
