package serve

import (
	"fmt"
	"strings"

	"medusa/runners/reference/engine"
)

// selfTestSeed makes prompts that no workload of the tests uses.
const selfTestSeed = 0x5e1f7e57

// SelfTest serves fixed prompts of varied length at batch sizes 1, 8, 64 and 3, as far as the engine and its KV cache have
// room for them, and returns the greedy tokens as text, one line a sequence. Two processes that compute the same return
// the same.
func SelfTest(e *engine.Engine) ([]byte, error) {
	var out strings.Builder
	for i, run := range []Run{{Batch: 1, Steps: 4}, {Batch: 8, Steps: 3}, {Batch: 64, Steps: 2}, {Batch: 3, Steps: 2}} {
		longest := min(9, e.MaxModelLen()-run.Steps-1)
		run.Batch = min(run.Batch, e.MaxBatch(), e.FreeBlocks()/e.BlocksOf(longest+run.Steps+1))
		w := Workload{Seed: selfTestSeed + uint64(i), MinPrompt: 1, MaxPrompt: longest, Runs: []Run{run}}
		results, err := Execute(e, w)
		if err != nil {
			return nil, fmt.Errorf("serve self test: %w", err)
		}
		for slot, tokens := range results[0].Tokens {
			fmt.Fprintf(&out, "batch=%d slot=%d tokens=%v\n", results[0].Batch, slot, tokens)
		}
	}
	return []byte(out.String()), nil
}
