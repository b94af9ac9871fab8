package restore

import (
	"path/filepath"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
)

// An engine states the contents of its weights if an artifact counts them, and loads other ones only where it is told to.
func TestWeights(t *testing.T) {
	dir := t.TempDir()
	write := func(folder, key string) *artifacts.Artifact {
		a := &artifacts.Artifact{Identity: artifacts.Identity{{Key: key, Value: "x"}}, Spec: &graphir.Spec{}}
		if err := artifacts.Write(filepath.Join(folder, key+artifacts.Suffix), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	free, mixed := write(dir, artifacts.KeyModelConfig), t.TempDir()
	write(mixed, artifacts.KeyModelConfig)
	tied := write(mixed, artifacts.KeyModelCheckpoint)
	for _, tt := range []struct {
		name     string
		run      Run
		told     contract.Contents
		artifact *artifacts.Artifact
		path     string
		want     Weights
	}{
		{"without Medusa", None, "", nil, "", AnyWeights},
		{"record-a", Record, "", nil, "", AnyWeights},
		{"record-b", Record, contract.ContentsOther, nil, "", OtherWeights},
		{"recordings of a tied artifact", Record, contract.ContentsCount, nil, "", CountedWeights},
		{"check-native of a tied artifact", Check, "", tied, "", AnyWeights},
		{"artifact for any weights", Restore, "", free, "x.medusa", AnyWeights},
		{"tied artifact", Restore, "", tied, "x.medusa", CountedWeights},
		{"folder of those for any weights", Restore, "", nil, dir, AnyWeights},
		{"folder with a tied one", Restore, "", nil, mixed, CountedWeights},
		{"no artifact", Restore, "", nil, filepath.Join(dir, "none"), AnyWeights},
	} {
		s := &Session{source: source{artifact: tt.artifact}}
		s.env.run, s.env.Weights, s.env.Artifact = tt.run, tt.told, tt.path
		if got := s.Weights(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
