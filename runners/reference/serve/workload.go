package serve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"medusa/runners/reference/engine"
)

// Workload is a list of decode runs over prompts that a seed decides: the same workload gives the same tokens on the same
// device, however the engine started.
type Workload struct {
	Seed      uint64 `json:"seed"`
	MinPrompt int    `json:"min_prompt"` // tokens of the shortest prompt
	MaxPrompt int    `json:"max_prompt"` // tokens of the longest
	Runs      []Run  `json:"runs"`
}

// Run decodes a number of steps at a batch size.
type Run struct {
	Batch int `json:"batch"`
	Steps int `json:"steps"`
}

// Result is the output of a run: Tokens[slot] has the token of the prefill and then one a step. Its JSON does not
// depend on how the engine started.
type Result struct {
	Run
	Tokens [][]int `json:"tokens"`
	StepMS float64 `json:"-"` // median time of a decode step
}

// ParseRuns reads "1:33,2,4:8": batch sizes with their steps, which default to steps.
func ParseRuns(text string, steps int) ([]Run, error) {
	var runs []Run
	for _, item := range strings.Split(text, ",") {
		batch, count, given := strings.Cut(item, ":")
		r := Run{Steps: steps}
		var err error
		if r.Batch, err = strconv.Atoi(batch); err == nil && given {
			r.Steps, err = strconv.Atoi(count)
		}
		if err != nil || r.Batch < 1 || r.Steps < 0 {
			return nil, fmt.Errorf("read batch sizes %q: %q is not BATCH or BATCH:STEPS", text, item)
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// ReadWorkload reads a workload from a JSON file.
func ReadWorkload(path string) (Workload, error) {
	var w Workload
	data, err := os.ReadFile(path)
	if err != nil {
		return w, fmt.Errorf("read workload: %w", err)
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return w, fmt.Errorf("read workload %s: %w", path, err)
	}
	return w, nil
}

// Execute decodes every run of a workload. The prompts are prefilled once, for the largest batch; each run then starts
// behind them, slot i with prompt i.
func Execute(e *engine.Engine, w Workload) ([]Result, error) {
	most := 0
	for _, r := range w.Runs {
		if r.Batch < 1 || r.Batch > e.MaxBatch() || w.MaxPrompt+r.Steps+1 > e.MaxModelLen() {
			return nil, fmt.Errorf("check workload: batch size %d with %d steps behind %d tokens exceeds %d sequences or %d tokens",
				r.Batch, r.Steps, w.MaxPrompt, e.MaxBatch(), e.MaxModelLen())
		}
		most = max(most, r.Batch)
	}
	prompts, err := Prompts(w.Seed, most, e.Config().VocabSize, w.MinPrompt, w.MaxPrompt)
	if err != nil {
		return nil, err
	}
	var sequences []*engine.Sequence
	defer func() {
		for _, s := range sequences {
			e.Drop(s)
		}
	}()
	for _, p := range prompts {
		s, err := e.NewSequence(p)
		if err != nil {
			return nil, err
		}
		sequences = append(sequences, s)
	}
	if _, err := e.Prefill(sequences); err != nil {
		return nil, err
	}
	var results []Result
	for _, r := range w.Runs {
		slots := sequences[:r.Batch]
		steps := make([]time.Duration, r.Steps)
		for i := range steps {
			began := time.Now()
			if _, err := e.Decode(slots); err != nil {
				return nil, err
			}
			steps[i] = time.Since(began)
		}
		result := Result{Run: r}
		if slices.Sort(steps); r.Steps > 0 {
			result.StepMS = float64(steps[r.Steps/2].Nanoseconds()) / 1e6
		}
		for i, s := range slots {
			result.Tokens = append(result.Tokens, slices.Clone(s.Tokens()[len(prompts[i]):]))
			s.Rewind(len(prompts[i]) + 1)
		}
		results = append(results, result)
	}
	return results, nil
}

// Prompts returns n prompts of random tokens, no two of them equal.
func Prompts(seed uint64, n, vocab, shortest, longest int) ([][]int, error) {
	if shortest < 1 || longest < shortest {
		return nil, fmt.Errorf("make prompts: lengths from %d to %d", shortest, longest)
	}
	rng := rand.New(rand.NewPCG(seed, 0x6d6564757361)) // the second word only has to stay the same
	seen := map[string]bool{}
	var prompts [][]int
	for tries := 0; len(prompts) < n; tries++ {
		if tries > 100*n {
			return nil, fmt.Errorf("make prompts: %d tokens of %d do not give %d distinct prompts", longest, vocab, n)
		}
		p := make([]int, shortest+rng.IntN(longest-shortest+1))
		for i := range p {
			p[i] = rng.IntN(vocab)
		}
		if key := fmt.Sprint(p); !seen[key] {
			seen[key] = true
			prompts = append(prompts, p)
		}
	}
	return prompts, nil
}
