package config

import (
	"errors"
	"math"
	"strings"
	"testing"
)

const base = `{"architectures":["LlamaForCausalLM"],"hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,
"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":300,"max_position_embeddings":128,"rms_norm_eps":1e-05,
"bos_token_id":1,"eos_token_id":[2,3]}`

func TestParse(t *testing.T) {
	c, err := Parse("config.json", []byte(base))
	if err != nil {
		t.Fatal(err)
	}
	if c.HeadDim != 16 || c.KVHeads != 2 || c.BOS != 1 || len(c.EOS) != 2 || c.Rope.Theta != 10000 || c.RMSNormEps != 1e-5 {
		t.Errorf("got %+v", c)
	}
	reformatted, err := Parse("config.json", []byte(strings.ReplaceAll(base, ",", " ,\n")))
	if err != nil || reformatted.Digest != c.Digest {
		t.Errorf("white space changed the digest %s to %s (%v)", c.Digest, reformatted.Digest, err)
	}
	other, err := Parse("config.json", []byte(strings.Replace(base, "1e-05", "1e-06", 1)))
	if err != nil || other.Digest == c.Digest {
		t.Errorf("another value kept the digest (%v)", err)
	}
	elsewhere := strings.NewReplacer("1e-05", "0.00001", "[2,3]", `4,"_name_or_path":"/models/x","transformers_version":"5.0","torch_dtype":"float16"`)
	same, err := Parse("config.json", []byte(elsewhere.Replace(base)))
	if err != nil || same.Digest != c.Digest {
		t.Errorf("a fine-tune of this model has the digest %s, not %s (%v)", same.Digest, c.Digest, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, row := range []struct{ name, from, to, field string }{
		{"foreign architecture", "LlamaForCausalLM", "BertModel", "architectures"},
		{"negative size", `"hidden_size":64`, `"hidden_size":-64`, "hidden_size"},
		{"no layers", `"num_hidden_layers":2`, `"num_hidden_layers":0`, "num_hidden_layers"},
		{"uneven groups", `"num_key_value_heads":2`, `"num_key_value_heads":3`, "num_key_value_heads"},
		{"uneven heads", `"num_attention_heads":4,"num_key_value_heads":2`, `"num_attention_heads":5`, "head_dim"},
		{"bias", `"vocab_size"`, `"attention_bias":true,"vocab_size"`, "attention_bias"},
		{"activation", `"vocab_size"`, `"hidden_act":"gelu","vocab_size"`, "hidden_act"},
		{"rope", `"vocab_size"`, `"rope_scaling":{"type":"yarn","factor":2},"vocab_size"`, "rope_scaling"},
		{"rope of a layer type", `"vocab_size"`, `"rope_parameters":{"full_attention":{},"rope_type":5},"vocab_size"`, "rope_parameters.rope_type"},
		{"rope theta", `"vocab_size"`, `"rope_theta":-1,"vocab_size"`, "rope_theta"},
		{"llama3 without a factor", `"vocab_size"`, `"rope_scaling":{"rope_type":"llama3"},"vocab_size"`, "rope_scaling.factor"},
		{"part of a head turns", `"vocab_size"`, `"rope_parameters":{"partial_rotary_factor":0.5},"vocab_size"`, "rope_parameters.partial_rotary_factor"},
		{"part of a head turns, older", `"vocab_size"`, `"partial_rotary_factor":0.5,"vocab_size"`, "partial_rotary_factor"},
		{"bias of the MLP", `"vocab_size"`, `"mlp_bias":true,"vocab_size"`, "mlp_bias"},
		{"sliding window", `"vocab_size"`, `"sliding_window":4096,"vocab_size"`, "sliding_window"},
		{"quantized", `"vocab_size"`, `"quantization_config":{"quant_method":"gptq"},"vocab_size"`, "quantization_config"},
		{"code of its own", `"vocab_size"`, `"auto_map":{"AutoModelForCausalLM":"m.M"},"vocab_size"`, "auto_map"},
		{"layers of several kinds", `"vocab_size"`, `"layer_types":["full_attention","sliding_attention"],"vocab_size"`, "layer_types"},
		{"another model", `"vocab_size"`, `"model_type":"mistral","vocab_size"`, "model_type"},
		{"a key in other letters", `"vocab_size"`, `"Vocab_Size"`, "vocab_size"},
		{"token id", `[2,3]`, `[2,300]`, "eos_token_id"},
		{"token id type", `[2,3]`, `"two"`, "eos_token_id"},
		{"no JSON", `{"arch`, `"arch`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := strings.Replace(base, row.from, row.to, 1)
			if text == base {
				t.Fatal("the row changes nothing")
			}
			_, err := Parse("dir/config.json", []byte(text))
			var bad *Error
			if !errors.As(err, &bad) || bad.File != "dir/config.json" || !strings.Contains(bad.Field, row.field) {
				t.Errorf("got %v, want an *Error about %q", err, row.field)
			}
		})
	}
}

// Keys that switch a feature off, or that do not change the results of the model, are accepted.
func TestParseAccepts(t *testing.T) {
	extra := `"model_type":"llama","sliding_window":null,"quantization_config":null,"attention_bias":false,"mlp_bias":false,
"hidden_act":"silu","rope_scaling":null,"layer_types":["full_attention","full_attention"],"attention_dropout":0.1,"use_cache":true,
"initializer_range":0.02,"pretraining_tp":2,"torch_dtype":"bfloat16","transformers_version":"4.40.0","_name_or_path":"x","pad_token_id":0,"vocab_size"`
	c, err := Parse("config.json", []byte(strings.Replace(base, `"vocab_size"`, extra, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if c.VocabSize != 300 || c.Rope.Scaling != "default" {
		t.Errorf("got %+v", c)
	}
}

// Keys that are missing take the defaults of transformers' LlamaConfig.
func TestDefaults(t *testing.T) {
	text := strings.NewReplacer(`"rms_norm_eps":1e-05,`, "", `"num_key_value_heads":2,`, "").Replace(base)
	c, err := Parse("config.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.RMSNormEps != 1e-6 || c.KVHeads != 4 || c.Rope.Theta != 10000 || c.TieEmbeddings {
		t.Errorf("got %+v", c)
	}
}

func TestRopeScaling(t *testing.T) {
	llama3 := Rope{Theta: 10000, Scaling: "llama3", Factor: 8, LowFrequency: 1, HighFrequency: 4, OriginalPositions: 64}
	plain := Rope{Theta: 10000, Scaling: "default"}.Frequencies(16)
	got := llama3.Frequencies(16)
	if got[0] != plain[0] {
		t.Errorf("the highest frequency changed from %v to %v", plain[0], got[0])
	}
	if last := len(plain) - 1; math.Abs(got[last]-plain[last]/8) > 1e-18 {
		t.Errorf("the lowest frequency is %v, want an eighth of %v", got[last], plain[last])
	}
	if linear := (Rope{Theta: 10000, Scaling: "linear", Factor: 2}).Frequencies(16); linear[3] != plain[3]/2 {
		t.Errorf("linear scaling gave %v", linear[3])
	}
}

func TestPreset(t *testing.T) {
	c, err := Preset("llama2-7b")
	if err != nil || c.Layers != 32 || c.HeadDim != 128 {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := Preset("gpt"); err == nil {
		t.Error("an unknown preset was accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(base))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz", data)
		if (c == nil) == (err == nil) {
			t.Errorf("got %v and %v", c, err)
		}
	})
}
