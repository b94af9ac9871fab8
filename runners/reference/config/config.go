// Package config reads the config.json of a Hugging Face checkpoint of the Llama architecture.
//
// In: the file's bytes. Out: a validated Config. Bad input is an *Error that names the file and the field; a feature
// that changes the model's results and that the engine lacks is refused, never ignored.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"medusa/runners/reference/plainjson"
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

// Error is one mistake in a configuration.
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

// Parse reads a configuration; name stands for the file in errors.
func Parse(name string, data []byte) (*Config, error) {
	k := &keys{file: name}
	if err := plainjson.Unmarshal(data, &k.values); err != nil {
		return nil, &Error{File: name, Reason: err.Error()}
	}
	k.refuseFeatures()
	c := &Config{
		HiddenSize:       k.size("hidden_size"),
		IntermediateSize: k.size("intermediate_size"),
		Layers:           k.size("num_hidden_layers"),
		QHeads:           k.size("num_attention_heads"),
		VocabSize:        k.size("vocab_size"),
		MaxPositions:     k.size("max_position_embeddings"),
		RMSNormEps:       float32(optional(k, "rms_norm_eps", 1e-6)),
		TieEmbeddings:    optional(k, "tie_word_embeddings", false),
	}
	c.KVHeads = optional(k, "num_key_value_heads", c.QHeads)
	k.heads(c)
	if !(c.RMSNormEps >= 0 && c.RMSNormEps < 1) {
		k.fail("rms_norm_eps", "%v is not between 0 and 1", c.RMSNormEps)
	}
	c.Rope = k.rope()
	if bos := k.tokens("bos_token_id", c.VocabSize); len(bos) > 0 {
		c.BOS = bos[0]
	} else {
		c.BOS = -1
	}
	c.EOS = k.tokens("eos_token_id", c.VocabSize)
	if k.err != nil {
		return nil, k.err
	}
	var err error
	if c.Digest, err = digest(data); err != nil {
		return nil, &Error{File: name, Reason: err.Error()}
	}
	return c, nil
}

// heads checks how the hidden size is divided.
func (k *keys) heads(c *Config) {
	if k.err != nil {
		return
	}
	if c.KVHeads <= 0 || c.QHeads%c.KVHeads != 0 {
		k.fail("num_key_value_heads", "%d does not divide the %d attention heads", c.KVHeads, c.QHeads)
		return
	}
	c.HeadDim = optional(k, "head_dim", 0)
	if k.has("head_dim") {
		if c.HeadDim <= 0 || c.HeadDim > 1<<16 {
			k.fail("head_dim", "%d is not between 1 and 65536", c.HeadDim)
		}
		return
	}
	if c.HeadDim = c.HiddenSize / c.QHeads; c.HiddenSize%c.QHeads != 0 {
		k.fail("head_dim", "it is missing, and %d heads do not divide the hidden size %d", c.QHeads, c.HiddenSize)
	}
}

// elsewhere are fields of a configuration that decide nothing about graphs: where a checkpoint came from, who wrote it, the type of its files (the engine
// states the type that it computes in), and tokens that end a text.
var elsewhere = []string{"_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id"}

// digest is the SHA-256 of the canonical form of all other fields: it depends on each value, and not on the formatting.
func digest(data []byte) (string, error) {
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		return "", err
	}
	// mutant: fields that checkpoints of one model differ in
	for _, field := range elsewhere {
		delete(v, field)
	}
	canonical, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
