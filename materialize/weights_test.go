package materialize

import (
	"testing"

	"medusa/artifacts"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// An attempt is worth another one only if record-b loaded other weights, or failed with them.
func TestEnginesThatLoadOtherWeights(t *testing.T) {
	states := func(keys ...string) []*recording.Recording {
		r := &recording.Recording{}
		for _, key := range keys {
			r.Identity = append(r.Identity, &trace.Identity{Key: key, Value: "x"})
		}
		return []*recording.Recording{r}
	}
	const checkpoint, name = artifacts.KeyModelCheckpoint, artifacts.KeyEngineName
	for what, tt := range map[string]struct {
		attempt attempt
		want    bool
	}{
		"did not start":       {attempt{}, false},
		"other in record-b":   {attempt{a: states(name), b: states(name, checkpoint)}, true},
		"failed in record-b":  {attempt{a: states(name)}, true},
		"does not ask":        {attempt{a: states(name), b: states(name)}, false},
		"always states them":  {attempt{a: states(checkpoint), b: states(checkpoint)}, false},
		"states and fails":    {attempt{a: states(checkpoint)}, false},
		"none of the factors": {attempt{a: states(), b: states()}, false},
	} {
		if got := tt.attempt.hadOtherWeights(); got != tt.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
