package config

import (
	"encoding/json"
	"math"
)

// Rope says how positions rotate queries and keys.
type Rope struct {
	Theta   float64
	Scaling string  // "default", "linear" or "llama3"
	Factor  float64 // linear, llama3: positions count for this much less

	// llama3: wavelengths beyond OriginalPositions/LowFrequency are scaled, those below OriginalPositions/HighFrequency
	// are left alone, and those in between are interpolated.
	LowFrequency, HighFrequency float64
	OriginalPositions           float64
}

// rope reads rope_scaling (rope_theta beside it) or the newer rope_parameters (rope_theta inside).
func (k *keys) rope() Rope {
	key := "rope_parameters"
	if !k.has(key) {
		key = "rope_scaling"
	}
	r := &keys{file: k.file, values: optional(k, key, map[string]json.RawMessage{})}
	out := Rope{
		Theta:             optional(r, "rope_theta", optional(k, "rope_theta", 10000.0)),
		Scaling:           optional(r, "rope_type", optional(r, "type", "default")),
		Factor:            optional(r, "factor", 0.0),
		LowFrequency:      optional(r, "low_freq_factor", 0.0),
		HighFrequency:     optional(r, "high_freq_factor", 0.0),
		OriginalPositions: optional(r, "original_max_position_embeddings", 0.0),
	}
	if part := optional(r, "partial_rotary_factor", 1.0); part != 1 {
		r.fail("partial_rotary_factor", "the engine does not implement %v", part)
	}
	if r.has("rope_theta") {
		r.positive("rope_theta", out.Theta)
	} else if k.has("rope_theta") {
		k.positive("rope_theta", out.Theta)
	}
	switch out.Scaling {
	case "default":
	case "linear":
		r.positive("factor", out.Factor)
	case "llama3":
		r.positive("factor", out.Factor)
		r.positive("low_freq_factor", out.LowFrequency)
		r.positive("original_max_position_embeddings", out.OriginalPositions)
		if !(out.HighFrequency > out.LowFrequency) {
			r.fail("high_freq_factor", "%v is not above low_freq_factor %v", out.HighFrequency, out.LowFrequency)
		}
	default:
		r.fail("rope_type", "the engine does not implement %q, only default, linear and llama3", out.Scaling)
	}
	if r.err != nil {
		k.fail(key+"."+r.err.Field, "%s", r.err.Reason)
	}
	return out
}

func (k *keys) positive(key string, v float64) {
	switch {
	case !k.has(key):
		k.fail(key, "it is missing")
	case !(v > 0):
		k.fail(key, "%v is not positive", v)
	}
}

// Frequencies returns the angle per position of each pair of a head's dimensions, headDim/2 of them.
func (r Rope) Frequencies(headDim int) []float64 {
	f := make([]float64, headDim/2)
	for i := range f {
		f[i] = r.scale(math.Pow(r.Theta, -2*float64(i)/float64(headDim)))
	}
	return f
}

func (r Rope) scale(f float64) float64 {
	switch r.Scaling {
	case "linear":
		return f / r.Factor
	case "llama3":
		// Rotations within the original context, as transformers' rope_type llama3 weighs them.
		turns := r.OriginalPositions * f / (2 * math.Pi)
		smooth := (turns - r.LowFrequency) / (r.HighFrequency - r.LowFrequency)
		smooth = min(1, max(0, smooth))
		return (1-smooth)*f/r.Factor + smooth*f
	}
	return f
}
