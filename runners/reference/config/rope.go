package config

import (
	"encoding/json"
	"fmt"
	"math"
)

// Rope says how positions rotate queries and keys.
type Rope struct {
	Theta   float64
	Scaling string  // "default", "linear" or "llama3"
	Factor  float64 // linear, llama3: positions count for this much less

	// llama3: wavelengths beyond OriginalPositions/LowFrequency are scaled, those below OriginalPositions/HighFrequency
	// are left alone, and what lies between is interpolated.
	LowFrequency, HighFrequency float64
	OriginalPositions           float64
}

// ropeFile is rope_scaling (rope_theta beside it) or the newer rope_parameters (rope_theta inside).
type ropeFile struct {
	Theta             *float64 `json:"rope_theta"`
	Type              string   `json:"rope_type"`
	OldType           string   `json:"type"`
	Factor            float64  `json:"factor"`
	LowFrequency      float64  `json:"low_freq_factor"`
	HighFrequency     float64  `json:"high_freq_factor"`
	OriginalPositions float64  `json:"original_max_position_embeddings"`
}

func parseRope(f *file) (Rope, error) {
	raw := f.RopeParameters
	if len(raw) == 0 || string(raw) == "null" {
		raw = f.RopeScaling
	}
	var r ropeFile
	if len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &r); err != nil {
			return Rope{}, err
		}
	}
	out := Rope{
		Theta: 10000, Scaling: r.Type, Factor: r.Factor,
		LowFrequency: r.LowFrequency, HighFrequency: r.HighFrequency, OriginalPositions: r.OriginalPositions,
	}
	if out.Scaling == "" {
		out.Scaling = r.OldType
	}
	if out.Scaling == "" {
		out.Scaling = "default"
	}
	if f.RopeTheta != nil {
		out.Theta = *f.RopeTheta
	}
	if r.Theta != nil {
		out.Theta = *r.Theta
	}
	if !(out.Theta > 0) || math.IsInf(out.Theta, 0) {
		return Rope{}, fmt.Errorf("rope_theta %v is not positive", out.Theta)
	}
	switch out.Scaling {
	case "default":
	case "linear":
		if !(out.Factor > 0) {
			return Rope{}, fmt.Errorf("factor %v is not positive", out.Factor)
		}
	case "llama3":
		if !(out.Factor > 0 && out.LowFrequency > 0 && out.HighFrequency > out.LowFrequency && out.OriginalPositions > 0) {
			return Rope{}, fmt.Errorf("llama3 needs a factor, low_freq_factor < high_freq_factor and original_max_position_embeddings")
		}
	default:
		return Rope{}, fmt.Errorf("type %q is not supported", out.Scaling)
	}
	return out, nil
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
