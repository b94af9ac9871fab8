package checkpoints

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// Half puts the checkpoint of the folder `from`, whose weights are F32, into the folder `to` with its weights rounded to F16.
func Half(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	config := filepath.Join(to, "config.json")
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, bytes.Replace(text, []byte(`"float32"`), []byte(`"float16"`), 1), 0o600); err != nil {
		return err
	}
	weights := filepath.Join(to, "model.safetensors")
	data, err := os.ReadFile(weights)
	if err != nil {
		return err
	}
	if data, err = halved(data); err != nil {
		return fmt.Errorf("round %s: %w", weights, err)
	}
	return os.WriteFile(weights, data, 0o600)
}

// halved returns a safetensors file with all tensors rounded: a header's length, the header, the elements.
func halved(file []byte) ([]byte, error) {
	end := 8 + binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:end], &header); err != nil {
		return nil, err
	}
	delete(header, "__metadata__")
	for name, t := range header {
		if t.Type != "F32" {
			return nil, fmt.Errorf("tensor %s has type %s, not F32", name, t.Type)
		}
		t.Type, t.Offsets = "F16", [2]int{t.Offsets[0] / 2, t.Offsets[1] / 2}
		header[name] = t
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	out := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for at := end; at < uint64(len(file)); at += 4 {
		out = binary.LittleEndian.AppendUint16(out, half(binary.LittleEndian.Uint32(file[at:])))
	}
	return out, nil
}

// half rounds a float of 32 bits to the nearest of 16 bits, ties to even.
func half(bits uint32) uint16 {
	const least, most = 0x38800000, 0x47800000 // the least normal number; the first that is too large
	sign, size := uint16(bits>>16)&0x8000, bits&^(1<<31)
	switch {
	case size < least:
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(size))*(1<<24)))
	case size >= most:
		return sign | 0x7c00
	}
	return sign | uint16((size+0xfff+size>>13&1-0x38000000)>>13)
}
