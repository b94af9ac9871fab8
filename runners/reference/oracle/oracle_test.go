package oracle

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/checkpoints"
)

const tiny = "../models/tiny"

// The golden logits are transformers' (testdata/golden.py). It runs in float64 here, but its norms, angles and softmax are
// float32 for each type of the model, so it agrees with the definition to about 1e-7 only.
func TestLogitsAreTransformers(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden []struct {
		Model  string    `json:"model"`
		Tokens []int     `json:"tokens"`
		Last   []float64 `json:"last"` // logits at the last position
		Next   []int     `json:"next"` // greedy tokens
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden) == 0 {
		t.Fatal("no golden logits")
	}
	rounded := filepath.Join(t.TempDir(), "tiny")
	if err := checkpoints.Half(tiny, rounded); err != nil {
		t.Fatal(err)
	}
	for _, g := range golden {
		m, err := Load(map[string]string{"tiny": tiny, "tiny-f16": rounded}[g.Model])
		if err != nil {
			t.Fatal(err)
		}
		logits, err := m.Logits(g.Tokens)
		if err != nil {
			t.Fatal(err)
		}
		last := logits[len(logits)-1]
		if len(last) != len(g.Last) {
			t.Fatalf("%s: %d logits, want %d", g.Model, len(last), len(g.Last))
		}
		for i, want := range g.Last {
			if math.Abs(last[i]-want) > 1e-5 {
				t.Fatalf("%s: logit %d after %d tokens is %.10f, want %.10f", g.Model, i, len(g.Tokens), last[i], want)
			}
		}
		next, err := m.Greedy(g.Tokens, len(g.Next))
		if err != nil {
			t.Fatal(err)
		}
		for i := range next {
			if next[i] != g.Next[i] {
				t.Fatalf("%s: greedy tokens %v, want %v", g.Model, next, g.Next)
			}
		}
	}
}

func TestNewChecksTensors(t *testing.T) {
	c, err := readConfig(filepath.Join(tiny, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.1.mlp.down_proj.weight"
	for _, change := range []struct {
		what string
		make func(map[string]Tensor)
		want string
	}{
		{"missing", func(w map[string]Tensor) { delete(w, name) }, name + " is missing"},
		{"misshapen", func(w map[string]Tensor) { w[name] = Tensor{[]int{176, 64}, w[name].Data} }, name + " has shape [176 64], want [64 176]"},
	} {
		weights, err := readSafetensors(filepath.Join(tiny, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		change.make(weights)
		if _, err := New(c, weights); err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: error %v, want one with %q", change.what, err, change.want)
		}
	}
}

func TestLogitsRejectsTokens(t *testing.T) {
	m, err := Load(tiny)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Logits([]int{1, m.Config.Vocab}); err == nil {
		t.Error("a token outside the vocabulary was accepted")
	}
}

func TestLoadRejects(t *testing.T) {
	good, err := os.ReadFile(filepath.Join(tiny, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		file []byte
		want string
	}{
		"empty":      {nil, "header is cut off"},
		"long":       {append([]byte{255, 255, 255, 255, 255, 255, 255, 127}, good[8:]...), "header is cut off"},
		"truncated":  {good[:len(good)/2], "outside the file"},
		"not JSON":   {append([]byte{2, 0, 0, 0, 0, 0, 0, 0}, "xy"...), "header"},
		"wrong type": {[]byte(strings.Replace(string(good), `"dtype":"F32"`, `"dtype":"I32"`, 1)), "not F32, F16 or BF16"},
	}
	for name, c := range cases {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := os.WriteFile(path, c.file, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readSafetensors(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: math.Ldexp(1, -24), 0x3555: 0.333251953125,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := half(bits); got != want {
			t.Errorf("half %#04x is %g, want %g", bits, got, want)
		}
	}
	if !math.IsNaN(half(0x7e00)) {
		t.Error("half 0x7e00 is a number")
	}
}
