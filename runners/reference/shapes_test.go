package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"medusa/runners/reference/oracle"
)

// shapes are models whose sizes are no multiples of a vector, a tile or each other.
var shapes = []shape{
	{hidden: 64, intermediate: 172, heads: 8, kvHeads: 4, headDim: 8, vocab: 512, layers: 2, dtype: "BF16"},
	{hidden: 50, intermediate: 67, heads: 5, kvHeads: 1, headDim: 10, vocab: 101, layers: 2, dtype: "F32", tied: true},
	{hidden: 33, intermediate: 1, heads: 3, kvHeads: 3, headDim: 6, vocab: 77, layers: 1, dtype: "F16"},
	{hidden: 7, intermediate: 90, heads: 2, kvHeads: 1, headDim: 136, vocab: 5, layers: 1, dtype: "BF16", tied: true},
	{hidden: 1, intermediate: 3, heads: 1, kvHeads: 1, headDim: 2, vocab: 3, layers: 3, dtype: "F32"},
}

func (s shape) String() string {
	return fmt.Sprintf("%s, %d wide, %d inside, %d of %d heads of %d, %d tokens, tied %v", s.dtype, s.hidden, s.intermediate, s.kvHeads, s.heads,
		s.headDim, s.vocab, s.tied)
}

// Models of any size agree with the float64 oracle, in prefill and through graphs, at batch sizes of every BLAS kernel.
// They have no tokenizer: prompts are token ids.
func TestShapesAgreeWithOracle(t *testing.T) {
	share := map[string]float64{"F32": 1e-4, "F16": 1e-2, "BF16": 3e-2}
	for _, s := range shapes {
		t.Run(s.String(), func(t *testing.T) {
			dir := t.TempDir()
			c := s.checkpoint()
			c.write(t, dir)
			model, err := oracle.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, batch := range []int{1, 3, 9, 65} {
				args := []string{"logits", "--model", dir, "--batch-sizes", fmt.Sprint(batch), "--page-size", "3", "--kv-cache-bytes", "4000000", "--steps", "2"}
				for i := range batch {
					ids := []int{i % s.vocab, 2, 1, i / s.vocab % s.vocab}
					args = append(args, "--prompt", strings.Trim(fmt.Sprint(ids), "[]"))
				}
				got := result[struct {
					Prompts []scored `json:"prompts"`
				}](t, nil, args...)
				if len(got.Prompts) != batch {
					t.Fatalf("%d results of %d prompts", len(got.Prompts), batch)
				}
				for _, p := range got.Prompts {
					want, err := model.Logits(append(slices.Clone(p.Input), p.Tokens...))
					if err != nil {
						t.Fatal(err)
					}
					compareLogits(t, fmt.Sprintf("batch %d, %q", batch, p.Prompt), p.Logits, want[len(p.Input)-1:], share[s.dtype])
				}
			}
		})
	}
}

// compareLogits checks rows of logits against the oracle's, within a share of the largest.
func compareLogits(t *testing.T, what string, got [][]float32, want [][]float64, share float64) {
	t.Helper()
	if len(got) == 0 {
		t.Fatalf("%s: no logits", what)
	}
	for i, logits := range got {
		largest, apart := 0.0, 0.0
		for j, v := range logits {
			largest = max(largest, math.Abs(want[i][j]))
			apart = max(apart, math.Abs(float64(v)-want[i][j]))
		}
		if !(apart <= share*largest) {
			t.Errorf("%s, token %d: logits are %g apart where the largest is %g", what, i, apart, largest)
		}
	}
}

// A checkpoint may repeat facts that follow from its configuration: the rotary frequencies of older checkpoints, and an output head that
// is tied and stored nevertheless. A missing epsilon is transformers' default.
func TestRedundantTensorsAreAccepted(t *testing.T) {
	s := small
	s.tied = true
	c := s.checkpoint()
	head := *c.find("model.embed_tokens.weight")
	head.name = "lm_head.weight"
	c.tensors = append(c.tensors, head, tensor{"model.layers.1.self_attn.rotary_emb.inv_freq", "F32", []int{2}, make([]byte, 8)})
	delete(c.config, "rms_norm_eps")
	// So small a first layer's norm depends on the epsilon.
	clear(c.find("model.embed_tokens.weight").data)
	clear(c.find("lm_head.weight").data)
	for i := range 32 {
		tiny := encodeElement("F32", 1e-3*float64(i%5+1))
		copy(c.find("model.embed_tokens.weight").data[4*16*i:], tiny)
		copy(c.find("lm_head.weight").data[4*16*i:], tiny)
	}
	dir := t.TempDir()
	c.write(t, dir)
	model, err := oracle.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := result[struct {
		Prompts []scored `json:"prompts"`
	}](t, nil, "logits", "--model", dir, "--batch-sizes", "1", "--kv-cache-bytes", "100000", "--prompt", "3 1")
	want, err := model.Logits(got.Prompts[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	compareLogits(t, "tied", got.Prompts[0].Logits, want[1:], 1e-4)
}

// Without a tokenizer, prompts and answers are token ids, and the engine says so.
func TestTokenIDsInPlaceOfText(t *testing.T) {
	dir := t.TempDir()
	c := small.checkpoint()
	c.write(t, dir)
	args := []string{"generate", "--model", dir, "--batch-sizes", "1", "--kv-cache-bytes", "100000", "--max-tokens", "3", "--prompt"}
	p := start(t, nil, append(args, "5 1")...)
	var ids []int
	for _, word := range strings.Fields(p.stdout) {
		var id int
		if _, err := fmt.Sscan(word, &id); err != nil || id >= small.vocab {
			t.Errorf("%q is no token id", word)
		}
		ids = append(ids, id)
	}
	if p.code != 0 || len(ids) != 5 || ids[0] != 5 || ids[1] != 1 || !strings.Contains(p.stderr, dir+" has no tokenizer.json: prompts and answers are token ids") {
		t.Errorf("exit code %d, stdout %q, stderr %q", p.code, p.stdout, p.stderr)
	}
	if p := start(t, nil, append(args, "In the beginning")...); p.code != 1 || !strings.Contains(p.stderr, `"In" is no token id`) {
		t.Errorf("exit code %d, stderr %q", p.code, p.stderr)
	}
}
