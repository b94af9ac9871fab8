// Package config reads the config.json of a Hugging Face checkpoint of the Llama architecture.
//
// In: the file's bytes. Out: a validated Config. Bad input is an *Error that names the file and the field; a feature
// that changes what the model computes and that the engine lacks is refused, never ignored.
package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// FileName is the configuration's name inside a checkpoint directory.
const FileName = "config.json"

// Config is the shape of a model and how it rotates positions.
type Config struct {
	HiddenSize       int
	IntermediateSize int
	Layers           int
	QHeads, KVHeads  int
	HeadDim          int
	VocabSize        int
	MaxPositions     int
	RMSNormEps       float32
	Rope             Rope
	TieEmbeddings    bool
	BOS              int   // -1: none
	EOS              []int // any of them ends a text

	// Digest identifies the configuration: SHA-256 over its canonical JSON (keys sorted, no white space).
	Digest string
}

// Error says what is wrong with a configuration.
type Error struct {
	File, Field, Reason string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("read model configuration %s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("read model configuration %s: %s: %s", e.File, e.Field, e.Reason)
}

// Load reads dir/config.json.
func Load(dir string) (*Config, error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read model configuration: %w", err)
	}
	return Parse(path, data)
}

// file is the part of config.json that the engine understands.
type file struct {
	Architectures    []string        `json:"architectures"`
	HiddenSize       int             `json:"hidden_size"`
	IntermediateSize int             `json:"intermediate_size"`
	Layers           int             `json:"num_hidden_layers"`
	QHeads           int             `json:"num_attention_heads"`
	KVHeads          *int            `json:"num_key_value_heads"`
	HeadDim          *int            `json:"head_dim"`
	VocabSize        int             `json:"vocab_size"`
	MaxPositions     int             `json:"max_position_embeddings"`
	RMSNormEps       float64         `json:"rms_norm_eps"`
	RopeTheta        *float64        `json:"rope_theta"`
	RopeScaling      json.RawMessage `json:"rope_scaling"`
	RopeParameters   json.RawMessage `json:"rope_parameters"`
	TieEmbeddings    bool            `json:"tie_word_embeddings"`
	HiddenAct        string          `json:"hidden_act"`
	AttentionBias    bool            `json:"attention_bias"`
	MLPBias          bool            `json:"mlp_bias"`
	BOS              json.RawMessage `json:"bos_token_id"`
	EOS              json.RawMessage `json:"eos_token_id"`
}

// Parse reads a configuration; name stands for the file in errors.
func Parse(name string, data []byte) (*Config, error) {
	fail := func(field, format string, args ...any) error {
		return &Error{File: name, Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fail("", "%v", err)
	}
	if !slices.Contains(f.Architectures, "LlamaForCausalLM") {
		return nil, fail("architectures", "%q is not LlamaForCausalLM", f.Architectures)
	}
	c := &Config{
		HiddenSize: f.HiddenSize, IntermediateSize: f.IntermediateSize, Layers: f.Layers, QHeads: f.QHeads,
		VocabSize: f.VocabSize, MaxPositions: f.MaxPositions, RMSNormEps: float32(f.RMSNormEps), TieEmbeddings: f.TieEmbeddings,
	}
	for _, field := range []struct {
		name  string
		value int
	}{
		{"hidden_size", c.HiddenSize}, {"intermediate_size", c.IntermediateSize}, {"num_hidden_layers", c.Layers},
		{"num_attention_heads", c.QHeads}, {"vocab_size", c.VocabSize}, {"max_position_embeddings", c.MaxPositions},
	} {
		// The bound keeps every product of two of them inside an int64.
		if field.value <= 0 || field.value > 1<<30 {
			return nil, fail(field.name, "%d is not between 1 and 2^30", field.value)
		}
	}
	c.KVHeads = c.QHeads
	if f.KVHeads != nil {
		c.KVHeads = *f.KVHeads
	}
	if c.KVHeads <= 0 || c.QHeads%c.KVHeads != 0 {
		return nil, fail("num_key_value_heads", "%d does not divide the %d attention heads", c.KVHeads, c.QHeads)
	}
	if f.HeadDim != nil {
		c.HeadDim = *f.HeadDim
	} else if c.HiddenSize%c.QHeads == 0 {
		c.HeadDim = c.HiddenSize / c.QHeads
	}
	if c.HeadDim <= 0 || c.HeadDim > 1<<16 {
		return nil, fail("head_dim", "%d heads do not divide the hidden size %d", c.QHeads, c.HiddenSize)
	}
	if !(c.RMSNormEps >= 0 && c.RMSNormEps < 1) {
		return nil, fail("rms_norm_eps", "%v is not between 0 and 1", f.RMSNormEps)
	}
	if f.HiddenAct != "" && f.HiddenAct != "silu" {
		return nil, fail("hidden_act", "%q is not supported, only silu", f.HiddenAct)
	}
	if f.AttentionBias || f.MLPBias {
		return nil, fail("attention_bias, mlp_bias", "linear layers with a bias are not supported")
	}
	var err error
	if c.Rope, err = parseRope(&f); err != nil {
		return nil, fail("rope_scaling", "%v", err)
	}
	bos, err := tokenIDs(f.BOS)
	if err != nil {
		return nil, fail("bos_token_id", "%v", err)
	}
	if c.BOS = -1; len(bos) > 0 {
		c.BOS = bos[0]
	}
	if c.EOS, err = tokenIDs(f.EOS); err != nil {
		return nil, fail("eos_token_id", "%v", err)
	}
	for _, id := range append(slices.Clone(c.EOS), max(c.BOS, 0)) {
		if id < 0 || id >= c.VocabSize {
			return nil, fail("bos_token_id, eos_token_id", "%d is not below the vocabulary's size %d", id, c.VocabSize)
		}
	}
	if c.Digest, err = digest(data); err != nil {
		return nil, fail("", "%v", err)
	}
	return c, nil
}

// tokenIDs reads null, one number or a list of numbers.
func tokenIDs(raw json.RawMessage) ([]int, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one int
	if err := json.Unmarshal(raw, &one); err == nil {
		return []int{one}, nil
	}
	var many []int
	err := json.Unmarshal(raw, &many)
	return many, err
}

// digest is the SHA-256 of the canonical form: reformatting a file changes nothing, any value does.
func digest(data []byte) (string, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // 1e-05 stays what it is
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
