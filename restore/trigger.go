package restore

import (
	"fmt"

	"medusa/restore/live"
	"medusa/restore/status"
)

// Triggers returns the batch sizes at which the engine is to run its first layer eagerly through Trigger, so that every hidden module is
// loaded (paper §5.2). Empty unless the session is Restoring, before Graphs, or the engine has captured in check-native. An engine asks
// again once it has its graphs, so that check-native leaves the same memory as check-restored.
func (s *Session) Triggers() []int64 {
	// mutant: triggers of a native start that checks
	if (!s.Restoring() || s.restored != nil) && !s.capturedAll() {
		return nil
	}
	var batches []int64
	for _, t := range s.source.spec().Triggers {
		batches = append(batches, t.Batch)
	}
	return batches
}

// Trigger runs one triggering layer: launches made by run on this thread lead to the modules of their kernels, and its
// allocations stay out of the allocation sequence. Call it once per batch size of Triggers, in that order.
// An error of run is returned as a *Fallback.
func (s *Session) Trigger(run func() error) (err error) {
	defer s.caught(&err)
	if s.exit != nil {
		return s.exit
	}
	if !s.Restoring() && s.env.run != Check {
		return run()
	}
	if s.earlier != nil {
		s.earlier.settle()
	}
	before := live.TriggerLaunches()
	elapsed := make(timings)
	stop := elapsed.start("run")
	err = live.InTrigger(run)
	stop()
	t := status.Trigger{Launches: live.TriggerLaunches() - before, Milliseconds: milliseconds(elapsed["run"])}
	if n, all := len(s.journal.triggers), s.source.spec().Triggers; n < len(all) {
		t.Batch = all[n].Batch
	}
	s.journal.triggers = append(s.journal.triggers, t)
	if err != nil {
		return s.fall(&Fallback{Engine, fmt.Errorf("run triggering layer at batch size %d: %w", t.Batch, err)})
	}
	return nil
}
