package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"medusa/runners/reference/plainjson"
)

// keys are the values of a configuration by key. The first failure is kept; values that are read after it are zero.
type keys struct {
	file   string
	values map[string]json.RawMessage
	err    *Error
}

func (k *keys) fail(key, format string, args ...any) {
	if k.err == nil {
		k.err = &Error{File: k.file, Field: key, Reason: fmt.Sprintf(format, args...)}
	}
}

// has reports whether a key is there with a value. Null means the default, as in transformers.
func (k *keys) has(key string) bool {
	raw, ok := k.values[key]
	return ok && string(raw) != "null"
}

// optional reads a key, or takes transformers' default for one that is not there.
func optional[T any](k *keys, key string, otherwise T) T {
	if k.err != nil || !k.has(key) {
		return otherwise
	}
	var v T
	if err := plainjson.Unmarshal(k.values[key], &v); err != nil {
		k.fail(key, "%v", err)
		return otherwise
	}
	return v
}

// size reads a dimension, which a checkpoint has to give. The bound keeps every product of two of them inside an int64.
func (k *keys) size(key string) int {
	if !k.has(key) {
		k.fail(key, "it is missing")
		return 0
	}
	n := optional(k, key, 0)
	if n <= 0 || n > 1<<30 {
		k.fail(key, "%d is not between 1 and 2^30", n)
	}
	return n
}

// tokens reads one token id, a list of them or null.
func (k *keys) tokens(key string, vocab int) []int {
	if k.err != nil || !k.has(key) {
		return nil
	}
	var one int
	var many []int
	if json.Unmarshal(k.values[key], &one) == nil {
		many = []int{one}
	} else if json.Unmarshal(k.values[key], &many) != nil {
		k.fail(key, "it is neither a token id nor a list of token ids")
		return nil
	}
	for _, id := range many {
		if id < 0 || id >= vocab {
			k.fail(key, "%d is not below the vocabulary's size %d", id, vocab)
		}
	}
	return many
}

// features are keys that change the model's results and that the engine lacks. A value that switches the feature off is
// accepted, and so is null. Keys that are on no list do not change the results of transformers' LlamaForCausalLM.
var features = []struct {
	key string
	off []string // JSON
}{
	{"hidden_act", []string{`"silu"`, `"swish"`}},
	{"attention_bias", []string{"false"}},
	{"mlp_bias", []string{"false"}},
	{"quantization_config", nil},
	{"compression_config", nil},
	{"partial_rotary_factor", []string{"1", "1.0"}},
	{"auto_map", nil},
	{"is_encoder_decoder", []string{"false"}},
	{"add_cross_attention", []string{"false"}},
	// Features of related architectures.
	{"sliding_window", nil},
	{"use_sliding_window", []string{"false"}},
	{"attention_chunk_size", nil},
	{"no_rope_layers", []string{"[]"}},
	{"qk_norm", []string{"false"}},
	{"use_qk_norm", []string{"false"}},
	{"attn_logit_softcapping", nil},
	{"final_logit_softcapping", nil},
	{"num_local_experts", []string{"0", "1"}},
	{"embedding_multiplier", []string{"1", "1.0"}},
	{"attention_multiplier", nil},
	{"residual_multiplier", []string{"1", "1.0"}},
	{"logits_scaling", []string{"1", "1.0"}},
}

func (k *keys) refuseFeatures() {
	if architectures := optional(k, "architectures", []string{}); !slices.Contains(architectures, "LlamaForCausalLM") {
		if !k.has("architectures") {
			k.fail("architectures", "it is missing (expected LlamaForCausalLM)")
		}
		k.fail("architectures", "%q is not LlamaForCausalLM", architectures)
	}
	if model := optional(k, "model_type", "llama"); model != "llama" {
		k.fail("model_type", "%q is not llama", model)
	}
	for _, f := range features {
		if raw := k.values[f.key]; k.has(f.key) && !slices.Contains(f.off, string(raw)) {
			k.fail(f.key, "the engine does not implement %s", abridged(raw))
		}
	}
	// A list of one kind a layer.
	for _, kind := range optional(k, "layer_types", []string{}) {
		if kind != "full_attention" {
			k.fail("layer_types", "the engine does not implement %q", kind)
		}
	}
}

// abridged is the beginning of a value, on one line.
func abridged(raw json.RawMessage) string {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil || line.Len() <= 60 {
		return line.String()
	}
	return strings.ToValidUTF8(line.String()[:60], "") + "..."
}
