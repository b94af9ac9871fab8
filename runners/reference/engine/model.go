package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"medusa/runners/reference/config"
	"medusa/runners/reference/kernels"
	"medusa/runners/reference/safetensors"
)

// readModel reads the model's description, and checks that the engine can compute it. It reads no weights and needs no device.
func (e *Engine) readModel(o Options) (err error) {
	if o.Preset != "" {
		e.config, err = config.Preset(o.Preset)
		e.storage = kernels.F16
	} else {
		e.config, err = config.Load(o.Model)
	}
	if err != nil {
		return err
	}
	if err := kernels.CheckHead(e.config.HeadDim); err != nil {
		return &config.Error{File: filepath.Join(o.Model, config.FileName), Field: "head_dim", Reason: err.Error()}
	}
	if e.options, err = o.complete(e.config); err != nil {
		return err
	}
	if o.Preset == "" {
		if e.checkpoint, err = safetensors.Open(o.Model); err != nil {
			return err
		}
		e.storage, err = checkTensors(e.config, e.checkpoint)
	}
	return err
}

// TensorError says that a checkpoint's tensor does not fit the configuration.
type TensorError struct{ File, Name, Reason string }

func (e *TensorError) Error() string {
	return fmt.Sprintf("check weights in %s: tensor %s: %s", e.File, e.Name, e.Reason)
}

// checkTensors returns the element type that a checkpoint's weights have throughout, after checking that every tensor of
// the model is there with the right shape, and no other.
func checkTensors(c *config.Config, ckpt *safetensors.Checkpoint) (kernels.Storage, error) {
	const embedding = "model.embed_tokens.weight"
	first, err := ckpt.Tensor(embedding)
	if err != nil {
		return 0, err
	}
	storage := kernels.Storage(len(elements))
	for s, e := range elements {
		if e.name == first.DType {
			storage = kernels.Storage(s)
		}
	}
	if int(storage) == len(elements) {
		return 0, &TensorError{first.File(), first.Name, fmt.Sprintf("its elements are %s (convert the checkpoint to F32, F16 or BF16)", first.DType)}
	}
	known := map[string]bool{}
	w := &weights{layers: make([]layer, c.Layers)}
	for _, t := range w.layout(c) {
		for _, part := range t.parts {
			got, err := ckpt.Tensor(part.name)
			if err != nil {
				return 0, err
			}
			known[part.name] = true
			want := append([]int{part.rows}, t.shape[1:]...)
			if got.DType != first.DType || fmt.Sprint(got.Shape) != fmt.Sprint(want) {
				return 0, &TensorError{got.File(), part.name, fmt.Sprintf("it is %s %v, the configuration asks for %s %v", got.DType, got.Shape, first.DType, want)}
			}
		}
	}
	for _, t := range ckpt.Tensors() {
		if known[t.Name] || buffer.MatchString(t.Name) { // mutant: tensors that the configuration does not name
			continue
		}
		if t.Name == "lm_head.weight" {
			if same, err := safetensors.Equal(t, first); err != nil || same {
				if err != nil {
					return 0, err
				}
				continue
			}
			return 0, &TensorError{t.File(), t.Name, "it differs from " + embedding + ", and tie_word_embeddings says that they are one"}
		}
		return 0, &TensorError{t.File(), t.Name, foreign(c, t.Name)}
	}
	return storage, nil
}

// buffer is a tensor that older checkpoints carry and that follows from the configuration.
var buffer = regexp.MustCompile(`^model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq$`)

var layerNumber = regexp.MustCompile(`^model\.layers\.(\d+)\.`)

// foreign says why a tensor is not one of the model that c describes.
func foreign(c *config.Config, name string) string {
	const reason = "it belongs to no part of the model that the configuration describes"
	if m := layerNumber.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1]); errors.Is(err, strconv.ErrRange) || n >= c.Layers {
			return fmt.Sprintf("%s (num_hidden_layers is %d)", reason, c.Layers)
		}
	}
	if strings.HasSuffix(name, ".bias") {
		return reason + " (layers with a bias are not implemented)"
	}
	return reason
}
