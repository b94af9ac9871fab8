package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// presets are shapes without a checkpoint, for runs that are about graphs and not about text.
var presets = map[string]string{
	"llama2-7b": `{"architectures":["LlamaForCausalLM"],"hidden_size":4096,"intermediate_size":11008,
		"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":32000,
		"max_position_embeddings":4096,"rms_norm_eps":1e-05,"rope_theta":10000.0,"hidden_act":"silu",
		"tie_word_embeddings":false,"bos_token_id":1,"eos_token_id":2}`,
}

// Preset returns a built-in shape by name.
func Preset(name string) (*Config, error) {
	text, ok := presets[name]
	if !ok {
		names := slices.Sorted(maps.Keys(presets))
		return nil, fmt.Errorf("find preset %q: not one of %s", name, strings.Join(names, ", "))
	}
	return Parse("preset "+name, []byte(text))
}
