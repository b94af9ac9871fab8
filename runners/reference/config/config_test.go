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
