package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// A checkpoint for a test: a configuration, and tensors in the order in which they are written.
type checkpoint struct {
	config  map[string]any
	tensors []tensor
}

type tensor struct {
	name  string
	dtype string
	shape []int
	data  []byte
}

// A shape is a model's, with random weights.
type shape struct {
	hidden, intermediate, heads, kvHeads, headDim, vocab, layers int
	dtype                                                        string
	tied                                                         bool
}

// small is the checkpoint that tests damage.
var small = shape{hidden: 16, intermediate: 24, heads: 4, kvHeads: 2, headDim: 4, vocab: 32, layers: 2, dtype: "F32"}

// checkpoint makes the model. Its weights are large enough that a wrong element shows in the logits.
func (s shape) checkpoint() checkpoint {
	c := checkpoint{config: map[string]any{
		"architectures": []any{"LlamaForCausalLM"}, "model_type": "llama", "hidden_size": s.hidden, "intermediate_size": s.intermediate,
		"num_hidden_layers": s.layers, "num_attention_heads": s.heads, "num_key_value_heads": s.kvHeads, "head_dim": s.headDim,
		"vocab_size": s.vocab, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
		"tie_word_embeddings": s.tied,
	}}
	random := rand.New(rand.NewPCG(7, 7))
	add := func(name string, shape ...int) {
		n, scale, offset := 1, 1/math.Sqrt(float64(shape[len(shape)-1])), 0.0
		for _, d := range shape {
			n *= d
		}
		if len(shape) == 1 {
			scale, offset = 0.2, 1
		}
		var data []byte
		for range n {
			data = append(data, encodeElement(s.dtype, offset+scale*random.NormFloat64())...)
		}
		c.tensors = append(c.tensors, tensor{name, s.dtype, shape, data})
	}
	add("model.embed_tokens.weight", s.vocab, s.hidden)
	for i := range s.layers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		add(layer+"input_layernorm.weight", s.hidden)
		add(layer+"self_attn.q_proj.weight", s.heads*s.headDim, s.hidden)
		add(layer+"self_attn.k_proj.weight", s.kvHeads*s.headDim, s.hidden)
		add(layer+"self_attn.v_proj.weight", s.kvHeads*s.headDim, s.hidden)
		add(layer+"self_attn.o_proj.weight", s.hidden, s.heads*s.headDim)
		add(layer+"post_attention_layernorm.weight", s.hidden)
		add(layer+"mlp.gate_proj.weight", s.intermediate, s.hidden)
		add(layer+"mlp.up_proj.weight", s.intermediate, s.hidden)
		add(layer+"mlp.down_proj.weight", s.hidden, s.intermediate)
	}
	add("model.norm.weight", s.hidden)
	if !s.tied {
		add("lm_head.weight", s.vocab, s.hidden)
	}
	return c
}

// encodeElement rounds towards zero: a test needs some number of the type, not the nearest.
func encodeElement(dtype string, v float64) []byte {
	bits := math.Float32bits(float32(v))
	switch dtype {
	case "F16":
		exponent := int(bits>>23&255) - 112
		if exponent <= 0 {
			return []byte{0, byte(bits >> 24 & 0x80)}
		}
		return binary.LittleEndian.AppendUint16(nil, uint16(bits>>16&0x8000)|uint16(exponent)<<10|uint16(bits>>13&0x3ff))
	case "BF16":
		return binary.LittleEndian.AppendUint16(nil, uint16(bits>>16))
	}
	return binary.LittleEndian.AppendUint32(nil, bits)
}

func (c *checkpoint) find(name string) *tensor {
	for i := range c.tensors {
		if c.tensors[i].name == name {
			return &c.tensors[i]
		}
	}
	panic("no tensor " + name)
}

func (c *checkpoint) drop(name string) {
	t := c.find(name)
	for i := range c.tensors {
		if &c.tensors[i] == t {
			c.tensors = append(c.tensors[:i], c.tensors[i+1:]...)
			return
		}
	}
}

// safetensors is the weights' file.
func (c *checkpoint) safetensors() []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, t := range c.tensors {
		header[t.name] = map[string]any{"dtype": t.dtype, "shape": t.shape, "data_offsets": []int{len(data), len(data) + len(t.data)}}
		data = append(data, t.data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...)
}

// write makes the checkpoint's folder, without a tokenizer.
func (c *checkpoint) write(t *testing.T, dir string) {
	t.Helper()
	config, err := json.Marshal(c.config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "config.json"), config)
	writeFile(t, filepath.Join(dir, "model.safetensors"), c.safetensors())
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
