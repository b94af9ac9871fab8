package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"medusa/test/calllog"
)

// most is the number of tokens of the longest answers.
const most = 40

// prompts are more than fit into a small cache at a time, and fewer than fit into the largest.
const prompts = 72

// prepare gets the expected tokens from a native engine with a fixed cache, and makes the artifact.
func (r *run) prepare() error {
	r.want = make(map[string][]int)
	for i := range prompts {
		r.want[fmt.Sprintf("%c%d And it came to pass", 'A'+i%26, i)] = nil
	}
	fixed, err := r.generate(nil, r.generating())
	if err != nil {
		return err
	}
	r.want = fixed.tokens()
	_, err = r.output(nil, r.medusa(r.generating("--kv", "elastic"), "materialize", "-o", r.artifact))
	if err != nil {
		return err
	}
	out, err := r.output(nil, []string{r.build + "/medusa", "inspect", "-o", "json", r.artifact})
	if err != nil {
		return err
	}
	var shown struct {
		KV      uint64 `json:"kv_bytes"`
		Elastic struct {
			Least  uint64 `json:"least_bytes"`
			Blocks uint64 `json:"blocks"`
		} `json:"kv_elastic"`
	}
	// The null block and one of a sequence fit into a page of each range.
	if err := json.Unmarshal(out, &shown); err != nil || shown.KV != largest || shown.Elastic.Least != ranges*page || shown.Elastic.Blocks != rows*page/block {
		return fmt.Errorf("medusa inspect shows %+v: %v", shown, err)
	}
	r.recorded = shown.KV
	return nil
}

// generating is an engine that continues all prompts.
func (r *run) generating(more ...string) []string {
	argv := r.engine("generate", append([]string{"--ignore-eos", "--max-tokens", fmt.Sprint(most), "-o", "json"}, more...)...)
	for _, p := range slices.Sorted(maps.Keys(r.want)) {
		argv = append(argv, "--prompt", p)
	}
	return argv
}

// generated is the output of such an engine.
type generated struct {
	Start   string `json:"start"`
	Blocks  int    `json:"kv_blocks"`
	Answers []struct {
		Prompt string `json:"prompt"`
		Tokens []int  `json:"tokens"`
	} `json:"answers"`
}

func (g *generated) tokens() map[string][]int {
	out := make(map[string][]int)
	for _, a := range g.Answers {
		out[a.Prompt] = a.Tokens
	}
	return out
}

func (r *run) generate(env []string, argv []string) (*generated, error) {
	out, err := r.output(env, argv)
	if err != nil {
		return nil, err
	}
	g := &generated{}
	return g, json.Unmarshal(out, g)
}

// sizes restores the artifact with parts of its cache mapped, at the recorded addresses and at others, and compares the tokens with those
// of native engines with as many blocks.
func (r *run) sizes() (string, error) {
	starts, tokens := 0, 0
	for _, percent := range []uint64{5, 25, 60, 100} {
		asked := r.recorded * percent / 100
		mappedBytes := fmt.Sprint(asked)
		for _, how := range []string{"native", "exact", "relocate"} {
			log := filepath.Join(r.work, fmt.Sprintf("calls-%d-%s", percent, how))
			argv := r.generating("--kv", "elastic", "--kv-mapped-bytes", mappedBytes)
			if how != "native" {
				argv = r.medusa(argv, "restore", "--addresses", how, r.artifact)
			}
			got, err := r.generate([]string{"SIMGPU_CALL_LOG=" + log}, argv)
			if err != nil {
				return "", err
			}
			if err := r.judge(how, asked, log, got); err != nil {
				return "", fmt.Errorf("%d %% of the cache, %s: %w", percent, how, err)
			}
			starts++
			for _, ids := range r.want {
				tokens += len(ids)
			}
		}
	}
	return fmt.Sprintf("sizes=5,25,60,100%% starts=%d tokens=%d", starts, tokens), nil
}

// neighbours restores the artifact beside processes that have so much memory that the recorded cache does not fit. Each byte that one has more
// is a byte less for the cache.
func (r *run) neighbours() (string, error) {
	const few, many = 780 << 20, 840 << 20
	var got [2]uint64
	for i, bytes := range []uint64{few, many} {
		log := filepath.Join(r.work, fmt.Sprintf("calls-neighbour-%d", i))
		argv := r.medusa(r.generating("--kv", "elastic"), "restore", "--addresses", "relocate", r.artifact)
		g, err := r.generate([]string{"SIMGPU_CALL_LOG=" + log, fmt.Sprintf("SIMGPU_NEIGHBOUR=%d", bytes)}, argv)
		if err != nil {
			return "", err
		}
		if got[i], err = mapped(log); err != nil {
			return "", err
		}
		if err := r.judge("relocate", got[i], log, g); err != nil {
			return "", fmt.Errorf("beside %d bytes: %w", bytes, err)
		}
	}
	// Each size is rounded down by less than a page of every range.
	if d := int64(got[0]) - int64(got[1]) - (many - few); d <= -ranges*page || d >= ranges*page || got[0] >= r.recorded-ranges*page || got[1] == 0 {
		return "", fmt.Errorf("beside %d and %d bytes, %d and %d of %d are mapped", few, many, got[0], got[1], r.recorded)
	}
	return fmt.Sprintf("neighbours=2 mapped=%d,%d%%", got[0]*100/r.recorded, got[1]*100/r.recorded), nil
}

// judge looks at one start.
func (r *run) judge(how string, asked uint64, path string, got *generated) error {
	log, err := calllog.Read(path)
	if err != nil {
		return err
	}
	captures, start := calllog.Count(log.Entries, "cuStreamBeginCapture"), "native"
	if how != "native" {
		start = "restored"
	}
	if got.Start != start || (captures == 0) != (start == "restored") {
		return fmt.Errorf("start %q with %d captures", got.Start, captures)
	}
	// In a region, other memory is mapped as well.
	if how != "exact" {
		onDevice, err := mapped(path)
		if err != nil {
			return err
		}
		if err := fits(asked, onDevice, got.Blocks); err != nil {
			return fmt.Errorf("by the device's log: %w", err)
		}
	}
	if err := fits(asked, uint64(got.Blocks)*block*ranges, got.Blocks); err != nil {
		return err
	}
	for prompt, want := range r.want {
		if ids := got.tokens()[prompt]; !slices.Equal(ids, want) || len(ids) != most {
			return fmt.Errorf("prompt %q: got %v, want %v", prompt, ids, want)
		}
	}
	return nil
}
