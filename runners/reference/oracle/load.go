package oracle

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// Load reads config.json and model.safetensors of a Hugging Face Llama checkpoint in one file, F32, F16 or BF16.
func Load(dir string) (*Model, error) {
	c, err := readConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	weights, err := readSafetensors(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return nil, err
	}
	return New(c, weights)
}

func readConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read checkpoint: %w", err)
	}
	var file struct {
		Type         string          `json:"model_type"`
		Vocab        int             `json:"vocab_size"`
		Hidden       int             `json:"hidden_size"`
		Layers       int             `json:"num_hidden_layers"`
		Heads        int             `json:"num_attention_heads"`
		KVHeads      int             `json:"num_key_value_heads"`
		HeadDim      int             `json:"head_dim"`
		Intermediate int             `json:"intermediate_size"`
		Eps          *float64        `json:"rms_norm_eps"`
		Theta        float64         `json:"rope_theta"`
		Scaling      json.RawMessage `json:"rope_scaling"`
		Tied         bool            `json:"tie_word_embeddings"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	if file.Type != "llama" || (len(file.Scaling) > 0 && string(file.Scaling) != "null") {
		return Config{}, fmt.Errorf("read %s: only plain Llama models without rope_scaling are computed (model_type %q)", path, file.Type)
	}
	if file.Heads <= 0 || file.Hidden <= 0 || file.Layers <= 0 || file.Vocab <= 0 || file.Intermediate <= 0 {
		return Config{}, fmt.Errorf("read %s: a size is missing or not positive", path)
	}
	c := Config{
		Vocab: file.Vocab, Hidden: file.Hidden, Layers: file.Layers, Heads: file.Heads, KVHeads: file.KVHeads,
		HeadDim: file.HeadDim, Intermediate: file.Intermediate, Eps: 1e-6, Theta: file.Theta, Tied: file.Tied,
	}
	if file.Eps != nil {
		c.Eps = *file.Eps
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	if c.Theta == 0 {
		c.Theta = 10000
	}
	return c, nil
}

// readSafetensors reads the format: the header's length (u64), a JSON header, then the tensors' bytes.
func readSafetensors(path string) (map[string]Tensor, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	if len(data) < 8 || binary.LittleEndian.Uint64(data) > uint64(len(data)-8) {
		return nil, fmt.Errorf("read %s: the header is cut off", path)
	}
	body := 8 + binary.LittleEndian.Uint64(data)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(data[8:body], &header); err != nil {
		return nil, fmt.Errorf("read %s: header: %w", path, err)
	}
	weights := map[string]Tensor{}
	for name, raw := range header {
		if name == "__metadata__" {
			continue
		}
		var entry struct {
			Type    string    `json:"dtype"`
			Shape   []int     `json:"shape"`
			Offsets [2]uint64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &entry); err != nil {
			return nil, fmt.Errorf("read %s: tensor %s: %w", path, name, err)
		}
		size := uint64(len(data)) - body
		if entry.Offsets[0] > entry.Offsets[1] || entry.Offsets[1] > size {
			return nil, fmt.Errorf("read %s: tensor %s: bytes %v lie outside the file's %d", path, name, entry.Offsets, size)
		}
		values, err := decode(entry.Type, data[body+entry.Offsets[0]:body+entry.Offsets[1]])
		if err != nil {
			return nil, fmt.Errorf("read %s: tensor %s: %w", path, name, err)
		}
		count := 1
		for _, n := range entry.Shape {
			count *= n
		}
		if count != len(values) {
			return nil, fmt.Errorf("read %s: tensor %s: shape %v has %d elements, its bytes hold %d", path, name, entry.Shape, count, len(values))
		}
		weights[name] = Tensor{entry.Shape, values}
	}
	return weights, nil
}

func decode(dtype string, raw []byte) ([]float64, error) {
	switch dtype {
	case "F32":
		out := make([]float64, len(raw)/4)
		for i := range out {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		}
		return out, nil
	case "F16":
		out := make([]float64, len(raw)/2)
		for i := range out {
			out[i] = half(binary.LittleEndian.Uint16(raw[2*i:]))
		}
		return out, nil
	case "BF16":
		out := make([]float64, len(raw)/2)
		for i := range out {
			out[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16))
		}
		return out, nil
	}
	return nil, fmt.Errorf("element type %s is not F32, F16 or BF16", dtype)
}

// half is the value of an IEEE 754 binary16 number.
func half(bits uint16) float64 {
	sign, exponent, fraction := 1.0, int(bits>>10&31), float64(bits&1023)
	if bits&0x8000 != 0 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}
