package engine

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
	"medusa/runners/reference/config"
	"medusa/runners/reference/kernels"
	"medusa/runners/reference/marks"
)

// weights are the model's parameters on the device, each tensor with an allocation of its own. Projections that read the
// same input are fused: their weights are stacked in one tensor.
type weights struct {
	embedding, finalNorm, head cuda.DevicePtr
	layers                     []layer
	all                        []*weight // in allocation order
}

type layer struct {
	inputNorm, qkv, output, postNorm, gateUp, down cuda.DevicePtr
}

// weight is one device tensor and the checkpoint tensors that it is stacked from.
type weight struct {
	name  string
	shape []int
	parts []part
	at    *cuda.DevicePtr
	size  uint64
}

type part struct {
	name string
	rows int
}

// layout lists the tensors of a model in allocation order. w.layers must exist.
func (w *weights) layout(c *config.Config) []*weight {
	one := func(at *cuda.DevicePtr, name string, shape ...int) *weight {
		return &weight{name: name, shape: shape, parts: []part{{name, shape[0]}}, at: at}
	}
	list := []*weight{one(&w.embedding, "model.embed_tokens.weight", c.VocabSize, c.HiddenSize)}
	q, kv := c.QHeads*c.HeadDim, c.KVHeads*c.HeadDim
	for i := range w.layers {
		l, prefix := &w.layers[i], fmt.Sprintf("model.layers.%d.", i)
		list = append(list,
			one(&l.inputNorm, prefix+"input_layernorm.weight", c.HiddenSize),
			&weight{name: prefix + "self_attn.qkv_proj.weight", shape: []int{q + 2*kv, c.HiddenSize}, at: &l.qkv, parts: []part{
				{prefix + "self_attn.q_proj.weight", q}, {prefix + "self_attn.k_proj.weight", kv}, {prefix + "self_attn.v_proj.weight", kv}}},
			one(&l.output, prefix+"self_attn.o_proj.weight", c.HiddenSize, q),
			one(&l.postNorm, prefix+"post_attention_layernorm.weight", c.HiddenSize),
			&weight{name: prefix + "mlp.gate_up_proj.weight", shape: []int{2 * c.IntermediateSize, c.HiddenSize}, at: &l.gateUp, parts: []part{
				{prefix + "mlp.gate_proj.weight", c.IntermediateSize}, {prefix + "mlp.up_proj.weight", c.IntermediateSize}}},
			one(&l.down, prefix+"mlp.down_proj.weight", c.HiddenSize, c.IntermediateSize))
	}
	list = append(list, one(&w.finalNorm, "model.norm.weight", c.HiddenSize))
	if !c.TieEmbeddings {
		list = append(list, one(&w.head, "lm_head.weight", c.VocabSize, c.HiddenSize))
	}
	return list
}

// width is the number of elements of one row of the tensor's first dimension.
func (t *weight) width() int {
	n := 1
	for _, d := range t.shape[1:] {
		n *= d
	}
	return n
}

// allocateWeights makes every tensor, without contents.
func allocateWeights(c *config.Config, storage kernels.Storage, m *memory) (*weights, error) {
	w := &weights{layers: make([]layer, c.Layers)}
	for _, t := range w.layout(c) {
		t.size = uint64(t.shape[0]) * uint64(t.width()) * elements[storage].size
		p, err := m.allocate(t.size)
		if err != nil {
			return w, fmt.Errorf("allocate weight %s of %d bytes: %w", t.name, t.size, err)
		}
		*t.at = p
		w.all = append(w.all, t)
		marks.Named(marks.Tensor{Name: t.name, Addr: p, Size: t.size, Role: marks.Weight, DType: elements[storage].mark, Shape: t.shape})
	}
	if c.TieEmbeddings {
		w.head = w.embedding
	}
	return w, nil
}

func (w *weights) free(m *memory, asleep bool) error {
	var err error
	for _, t := range w.all {
		err = errors.Join(err, m.free(*t.at, asleep))
	}
	return err
}
