// Package oracle computes a Llama model on the CPU in float64. The engine's logits are judged against it.
//
// In: a configuration and weights (New), or a Hugging Face checkpoint directory in F32, F16 or BF16 (Load), and token ids.
// Out: the logits at each position. It shares no code with the engine, neither device code nor readers; it has no KV
// cache and no batches, only the definition of the architecture. Missing or misshapen tensors are errors.
package oracle

import (
	"fmt"
	"math"
)

// Config is the part of a model's configuration that its function depends on.
type Config struct {
	Vocab, Hidden, Layers, Heads, KVHeads, HeadDim, Intermediate int

	Eps, Theta float64 // of RMSNorm; base of the rotary frequencies
	Tied       bool    // the output head is the embedding
}

// Tensor is a row-major array.
type Tensor struct {
	Shape []int
	Data  []float64
}

type layer struct {
	q, k, v, o, gate, up, down []float64
	inputNorm, attentionNorm   []float64
}

// Model is a checkpoint ready to compute.
type Model struct {
	Config Config

	embedding, norm, head []float64
	layers                []layer
}

// New takes weights under their Hugging Face names and checks their shapes.
func New(c Config, weights map[string]Tensor) (*Model, error) {
	m := &Model{Config: c, layers: make([]layer, c.Layers)}
	var problem error
	take := func(name string, shape ...int) []float64 {
		t, ok := weights[name]
		switch {
		case problem != nil:
		case !ok:
			problem = fmt.Errorf("read checkpoint: tensor %s is missing", name)
		case fmt.Sprint(t.Shape) != fmt.Sprint(shape):
			problem = fmt.Errorf("read checkpoint: tensor %s has shape %v, want %v", name, t.Shape, shape)
		}
		return t.Data
	}
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	m.embedding = take("model.embed_tokens.weight", c.Vocab, c.Hidden)
	m.norm = take("model.norm.weight", c.Hidden)
	m.head = m.embedding
	if !c.Tied {
		m.head = take("lm_head.weight", c.Vocab, c.Hidden)
	}
	for i := range m.layers {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		m.layers[i] = layer{
			q:             take(prefix+"self_attn.q_proj.weight", q, c.Hidden),
			k:             take(prefix+"self_attn.k_proj.weight", kv, c.Hidden),
			v:             take(prefix+"self_attn.v_proj.weight", kv, c.Hidden),
			o:             take(prefix+"self_attn.o_proj.weight", c.Hidden, q),
			gate:          take(prefix+"mlp.gate_proj.weight", c.Intermediate, c.Hidden),
			up:            take(prefix+"mlp.up_proj.weight", c.Intermediate, c.Hidden),
			down:          take(prefix+"mlp.down_proj.weight", c.Hidden, c.Intermediate),
			inputNorm:     take(prefix+"input_layernorm.weight", c.Hidden),
			attentionNorm: take(prefix+"post_attention_layernorm.weight", c.Hidden),
		}
	}
	if problem != nil {
		return nil, problem
	}
	return m, nil
}

// Logits returns the model's output at every position: entry i scores the token that follows tokens[:i+1].
func (m *Model) Logits(tokens []int) ([][]float64, error) {
	c := m.Config
	x := make([][]float64, len(tokens))
	for i, t := range tokens {
		if t < 0 || t >= c.Vocab {
			return nil, fmt.Errorf("compute logits: token %d at position %d is outside the vocabulary of %d", t, i, c.Vocab)
		}
		x[i] = append([]float64(nil), m.embedding[t*c.Hidden:(t+1)*c.Hidden]...)
	}
	for i := range m.layers {
		m.layers[i].apply(c, x)
	}
	logits := make([][]float64, len(tokens))
	for i := range x {
		logits[i] = multiply(m.head, rmsNorm(x[i], m.norm, c.Eps), c.Vocab)
	}
	return logits, nil
}

// Greedy returns n tokens that follow prompt, each the most likely one (the lowest id among equals).
func (m *Model) Greedy(prompt []int, n int) ([]int, error) {
	tokens := append([]int(nil), prompt...)
	for range n {
		logits, err := m.Logits(tokens)
		if err != nil {
			return nil, err
		}
		best, last := 0, logits[len(logits)-1]
		for i, v := range last {
			if v > last[best] {
				best = i
			}
		}
		tokens = append(tokens, best)
	}
	return tokens[len(prompt):], nil
}

// apply adds one decoder layer's attention and MLP to the residual stream x, one row a position.
func (l *layer) apply(c Config, x [][]float64) {
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
	for i := range x {
		h := rmsNorm(x[i], l.inputNorm, c.Eps)
		q[i] = rotate(multiply(l.q, h, c.Heads*c.HeadDim), c, i)
		k[i] = rotate(multiply(l.k, h, c.KVHeads*c.HeadDim), c, i)
		v[i] = multiply(l.v, h, c.KVHeads*c.HeadDim)
	}
	for i := range x {
		add(x[i], multiply(l.o, attend(c, q[i], k[:i+1], v[:i+1]), c.Hidden))
		h := rmsNorm(x[i], l.attentionNorm, c.Eps)
		gate, up := multiply(l.gate, h, c.Intermediate), multiply(l.up, h, c.Intermediate)
		for j := range gate {
			gate[j] = gate[j] / (1 + math.Exp(-gate[j])) * up[j]
		}
		add(x[i], multiply(l.down, gate, c.Hidden))
	}
}

// attend returns all heads' outputs for one query over the keys and values up to its position.
func attend(c Config, q []float64, k, v [][]float64) []float64 {
	out := make([]float64, len(q))
	scores := make([]float64, len(k))
	for h := range c.Heads {
		shared := h / (c.Heads / c.KVHeads) * c.HeadDim
		query, result := q[h*c.HeadDim:(h+1)*c.HeadDim], out[h*c.HeadDim:(h+1)*c.HeadDim]
		peak, total := math.Inf(-1), 0.0
		for i := range k {
			scores[i] = dot(query, k[i][shared:]) / math.Sqrt(float64(c.HeadDim))
			peak = math.Max(peak, scores[i])
		}
		for i := range scores {
			scores[i] = math.Exp(scores[i] - peak)
			total += scores[i]
		}
		for i := range v {
			for d := range result {
				result[d] += scores[i] / total * v[i][shared+d]
			}
		}
	}
	return out
}

// rotate turns the two halves of each head against each other by the position's angles (Hugging Face's convention).
func rotate(x []float64, c Config, position int) []float64 {
	half := c.HeadDim / 2
	for at := 0; at < len(x); at += c.HeadDim {
		for i := range half {
			angle := float64(position) * math.Pow(c.Theta, -2*float64(i)/float64(c.HeadDim))
			sin, cos := math.Sincos(angle)
			a, b := x[at+i], x[at+half+i]
			x[at+i], x[at+half+i] = a*cos-b*sin, b*cos+a*sin
		}
	}
	return x
}

func rmsNorm(x, weight []float64, eps float64) []float64 {
	scale := 1 / math.Sqrt(dot(x, x)/float64(len(x))+eps)
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] * scale * weight[i]
	}
	return out
}

// multiply returns weight (rows x len(x)) times x.
func multiply(weight, x []float64, rows int) []float64 {
	out := make([]float64, rows)
	for i := range out {
		out[i] = dot(x, weight[i*len(x):])
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func add(to, from []float64) {
	for i, v := range from {
		to[i] += v
	}
}
