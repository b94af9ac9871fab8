package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "accept the messages about wrong checkpoints")

// wrong is a checkpoint with one mistake, and the text that the message about it has to contain.
type wrong struct {
	name  string
	names []string // beside the folder
	make  func(t *testing.T, dir string)
}

// wrongConfig changes the configuration.
func wrongConfig(name string, names []string, change func(config map[string]any)) wrong {
	return wrong{name, names, func(t *testing.T, dir string) {
		c := small.checkpoint()
		change(c.config)
		c.write(t, dir)
	}}
}

// wrongTensors changes the tensors.
func wrongTensors(name string, names []string, change func(c *checkpoint)) wrong {
	return wrong{name, names, func(t *testing.T, dir string) {
		c := small.checkpoint()
		change(&c)
		c.write(t, dir)
	}}
}

// wrongFile changes the bytes of a file, or removes it.
func wrongFile(name, file string, names []string, change func([]byte) []byte) wrong {
	return wrong{name, names, func(t *testing.T, dir string) {
		c := small.checkpoint()
		c.write(t, dir)
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if data = change(data); data == nil {
			err = os.Remove(filepath.Join(dir, file))
		} else {
			err = os.WriteFile(filepath.Join(dir, file), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}}
}

// missing, mistyped and wrong values of the configuration.
func wrongConfigs() []wrong {
	var rows []wrong
	set := func(what, key string, value any) {
		rows = append(rows, wrongConfig(fmt.Sprintf("`%s` %s", key, what), []string{"config.json: " + key}, func(c map[string]any) { c[key] = value }))
	}
	for _, key := range []string{"architectures", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
		"max_position_embeddings"} {
		rows = append(rows, wrongConfig("`"+key+"` missing", []string{"config.json: " + key, "missing"}, func(c map[string]any) { delete(c, key) }))
	}
	rows = append(rows, wrongConfig("`num_key_value_heads` missing: all heads", []string{"model.safetensors", "k_proj"}, func(c map[string]any) { delete(c, "num_key_value_heads") }))
	rows = append(rows, wrongConfig("`head_dim` missing, heads that do not divide", []string{"config.json: head_dim"}, func(c map[string]any) {
		delete(c, "head_dim")
		c["num_attention_heads"], c["num_key_value_heads"] = 3, 1
	}))
	for _, key := range []string{"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
		"max_position_embeddings", "rms_norm_eps", "rope_theta", "tie_word_embeddings", "rope_scaling", "bos_token_id"} {
		set("a string", key, "4")
	}
	set("a string", "architectures", "LlamaForCausalLM")
	set("a number", "hidden_act", 5)
	set("a number with a fraction", "vocab_size", 32.5)
	set("a list of strings", "eos_token_id", []any{"2"})
	set("0", "num_hidden_layers", 0)
	set("odd", "head_dim", 5)
	set("outside the vocabulary", "eos_token_id", 32)
	set("a window", "sliding_window", 4096)
	set("of a method", "quantization_config", map[string]any{"quant_method": "gptq", "bits": 4})
	set("yarn", "rope_scaling", map[string]any{"rope_type": "yarn", "factor": 2.0})
	set("dynamic, in older files", "rope_scaling", map[string]any{"type": "dynamic", "factor": 2.0})
	set("true", "attention_bias", true)
	set("true", "mlp_bias", true)
	set("gelu", "hidden_act", "gelu")
	set("of another model", "architectures", []any{"MistralForCausalLM"})
	return rows
}

// missing, misshapen, renamed and additional tensors.
func wrongWeights() []wrong {
	const q, down = "model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight"
	var rows []wrong
	c := small.checkpoint()
	for _, t := range c.tensors {
		if strings.Contains(t.name, ".layers.0.") {
			continue // those of one layer are enough
		}
		rows = append(rows, wrongTensors("`"+t.name+"` missing", []string{`"` + t.name + `"`}, func(c *checkpoint) { c.drop(t.name) }))
		rows = append(rows, wrongTensors("`"+t.name+"` with a row less", []string{"model.safetensors", t.name}, func(c *checkpoint) {
			t := c.find(t.name)
			row := len(t.data) / t.shape[0]
			t.shape = append([]int{t.shape[0] - 1}, t.shape[1:]...)
			t.data = t.data[:len(t.data)-row]
		}))
	}
	add := func(name string, shape ...int) func(c *checkpoint) {
		return func(c *checkpoint) {
			size := 4
			for _, d := range shape {
				size *= d
			}
			c.tensors = append(c.tensors, tensor{name, "F32", shape, make([]byte, size)})
		}
	}
	is := func(what string, names []string, change func(c *checkpoint)) {
		rows = append(rows, wrongTensors(what, names, change))
	}
	is("a tensor renamed", []string{`"` + down + `"`}, func(c *checkpoint) { c.find(down).name = "model.layers.1.mlp.w2.weight" })
	is("all tensors without their prefix", []string{`"model.embed_tokens.weight"`}, func(c *checkpoint) {
		for i := range c.tensors {
			c.tensors[i].name = strings.TrimPrefix(c.tensors[i].name, "model.")
		}
	})
	is("a tensor transposed", []string{"model.safetensors", down}, func(c *checkpoint) { slices.Reverse(c.find(down).shape) })
	is("a tensor flattened", []string{"model.safetensors", q}, func(c *checkpoint) { c.find(q).shape = []int{16 * 16} })
	is("a bias of attention", []string{"model.safetensors", "model.layers.0.self_attn.q_proj.bias"}, add("model.layers.0.self_attn.q_proj.bias", 16))
	is("a bias of the MLP", []string{"model.safetensors", "model.layers.1.mlp.up_proj.bias"}, add("model.layers.1.mlp.up_proj.bias", 24))
	is("a norm of queries", []string{"model.safetensors", "model.layers.0.self_attn.q_norm.weight"}, add("model.layers.0.self_attn.q_norm.weight", 4))
	is("scales of a quantized weight", []string{"model.safetensors", down + "_scale"}, add(down+"_scale", 16))
	is("a tensor of another layer", []string{"model.safetensors", "model.layers.2.", "num_hidden_layers is 2"}, add("model.layers.2.input_layernorm.weight", 16))
	is("a layer more than `num_hidden_layers`", []string{"model.safetensors", "model.layers.1.", "num_hidden_layers is 1"}, func(c *checkpoint) { c.config["num_hidden_layers"] = 1 })
	is("a layer less than `num_hidden_layers`", []string{`"model.layers.2.`}, func(c *checkpoint) { c.config["num_hidden_layers"] = 3 })
	is("a head of its own, said to be tied", []string{"model.safetensors", "lm_head.weight", "tie_word_embeddings"}, func(c *checkpoint) { c.config["tie_word_embeddings"] = true })
	is("a tensor of another type", []string{"model.safetensors", down, "F16"}, func(c *checkpoint) {
		t := c.find(down)
		t.dtype, t.data = "F16", t.data[:len(t.data)/2]
	})
	is("all tensors of type F64", []string{"model.safetensors", "F64"}, func(c *checkpoint) {
		for i := range c.tensors {
			t := &c.tensors[i]
			t.dtype, t.data = "F64", append(t.data, t.data...)
		}
	})
	is("a weight that is NaN", []string{"model.safetensors", down, "element 37 "}, func(c *checkpoint) {
		binary.LittleEndian.PutUint32(c.find(down).data[4*37:], math.Float32bits(float32(math.NaN())))
	})
	is("a weight that is infinite", []string{"model.safetensors", q, "element 255 "}, func(c *checkpoint) {
		binary.LittleEndian.PutUint32(c.find(q).data[4*255:], math.Float32bits(float32(math.Inf(-1))))
	})
	return rows
}

// Files that are damaged or not there.
func wrongFiles() []wrong {
	const config, weights, index, tokenizer = "config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"
	text := func(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }
	replace := func(from, to string) func([]byte) []byte {
		return func(data []byte) []byte { return bytes.Replace(data, []byte(from), []byte(to), 1) }
	}
	remove := func([]byte) []byte { return nil }
	return []wrong{
		wrongFile("no configuration", config, []string{config}, remove),
		wrongFile("an empty configuration", config, []string{config}, text("")),
		wrongFile("a configuration cut off", config, []string{config}, func(d []byte) []byte { return d[:len(d)/2] }),
		wrongFile("a configuration that is a list", config, []string{config}, text("[]")),
		wrongFile("no weights", weights, []string{weights}, remove),
		wrongFile("empty weights", weights, []string{weights}, text("")),
		wrongFile("weights cut off in the header", weights, []string{weights}, func(d []byte) []byte { return d[:100] }),
		wrongFile("weights cut off by one byte", weights, []string{weights, "lm_head.weight"}, func(d []byte) []byte { return d[:len(d)-1] }),
		wrongFile("weights with a byte more", weights, []string{weights}, func(d []byte) []byte { return append(d, 0) }),
		wrongFile("a type that the format lacks", weights, []string{weights, `"F31"`}, replace(`"dtype":"F32"`, `"dtype":"F31"`)),
		wrongFile("a shape that is a string", weights, []string{weights, "shape"}, replace(`"shape":[32,16]`, `"shape":"32*1"`)),
		wrongFile("an index that is no JSON", index, []string{index}, text("{")),
		wrongFile("an index with a number for a file", index, []string{index, "weight_map"}, text(`{"weight_map":{"lm_head.weight":1}}`)),
		wrongFile("an index that names no tensor", index, []string{index}, text(`{"metadata":{}}`)),
		wrongFile("an index of a file that is missing", index, []string{"model-00001-of-00002.safetensors"}, text(`{"weight_map":{"lm_head.weight":"model-00001-of-00002.safetensors"}}`)),
		wrongFile("an index of a tensor that is missing", index, []string{`"lm_head.bias"`}, text(`{"weight_map":{"lm_head.bias":"model.safetensors"}}`)),
		wrongFile("an index that leads out of the folder", index, []string{index, "../model.safetensors"}, text(`{"weight_map":{"lm_head.weight":"../model.safetensors"}}`)),
		wrongFile("a tokenizer that is no JSON", tokenizer, []string{tokenizer}, text("BPE")),
		wrongFile("a tokenizer with a string for an id", tokenizer, []string{tokenizer, "added_tokens"}, text(`{"added_tokens":[{"id":"0","content":"<s>"}],"model":{"type":"BPE"}}`)),
		wrongFile("a tokenizer of another kind", tokenizer, []string{tokenizer, "Unigram"}, text(`{"model":{"type":"Unigram"}}`)),
	}
}

// words of Go that no message may have.
var goWords = regexp.MustCompile(`Go struct|Go value|unmarshal|panic|goroutine|\[\]?u?int|float64|map\[|%!`)

// Each wrong checkpoint ends the start with exit code 1 and one line that names the folder and the mistake. wrong-checkpoints.md has
// all lines.
func TestWrongCheckpoints(t *testing.T) {
	const golden = "wrong-checkpoints.md"
	rows := slices.Concat(wrongConfigs(), wrongWeights(), wrongFiles())
	table := "# Wrong checkpoints\n\nWhat `reference` says of a checkpoint with one mistake in it; `DIR` stands for its folder. `go test ./runners/reference -run\nTestWrongCheckpoints -update` writes this table.\n\n| mistake | message |\n|---|---|\n"
	for _, row := range rows {
		dir := t.TempDir()
		row.make(t, dir)
		p := start(t, nil, "generate", "--model", dir, "--batch-sizes", "1", "--kv-cache-bytes", "100000", "--prompt", "1")
		line, rest, _ := strings.Cut(p.stderr, "\n")
		if p.code != 1 || p.stdout != "" || rest != "" || !strings.Contains(line, dir) || goWords.MatchString(line) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", row.name, p.code, p.stdout, p.stderr)
		}
		for _, name := range row.names {
			if !strings.Contains(line, name) {
				t.Errorf("%s: %q does not name %s", row.name, line, name)
			}
		}
		message := strings.TrimPrefix(strings.ReplaceAll(line, dir, "DIR"), "reference: ")
		table += fmt.Sprintf("| %s | %s |\n", row.name, strings.ReplaceAll(message, "|", `\|`))
	}
	if len(rows) < 41 {
		t.Errorf("%d checkpoints, at least 41 are wanted", len(rows))
	}
	if *update {
		writeFile(t, golden, []byte(table))
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != table {
		t.Errorf("%s is not what the engine says (accept it with -update):\n%s", golden, table)
	}
}
