package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/checkpoints"
	"medusa/test/testenv"
)

// One artifact serves every checkpoint of a configuration: its own, two with other values in tensors of equal shapes, and its own at another place with
// other words about itself. Each is restored with its own tokens, and no two have the same.
func TestCheckpointsOfOneConfiguration(t *testing.T) {
	tiny := testenv.Path(t, "runners", "reference", "models", "tiny")
	command := func(model string) []string {
		return []string{"run", "--model", model, "--batch-sizes", "1,8", "--batches", "8:12", "-o", "json"}
	}
	reference := testenv.Path(t, "build", "reference")
	path, art := materialized(t, append([]string{reference}, command(tiny)...)...)
	if art.Identity.Has(artifacts.KeyModelCheckpoint) || art.Verification.Tied != "" {
		t.Errorf("the artifact is tied to its weights: %+v, %s", art.Identity, art.Verification.Tied)
	}
	tokens := map[string]string{}
	for name, model := range map[string]string{
		"tiny": tiny, "first": derived(t, tiny, 1), "second": derived(t, tiny, 2),
	} {
		want := decode(t, must(t, nil, "reference", command(model)...))
		p, st := restored(t, nil, path, append([]string{reference}, command(model)...)...)
		if got := decode(t, p); st.Status != status.Restored || !reflect.DeepEqual(got.Runs, want.Runs) {
			t.Errorf("%s: %s %s %s, tokens as native: %v", name, st.Status, st.Reason, st.Detail, reflect.DeepEqual(got.Runs, want.Runs))
		}
		text := fmt.Sprint(want.Runs)
		if other, seen := tokens[text]; seen {
			t.Errorf("%s and %s have the same tokens natively", name, other)
		}
		tokens[text] = name

		// Results of verification hold for its own weights only.
		p, st = started(t, nil, []string{"--check=full"}, path, append([]string{reference}, command(model)...))
		if got := decode(t, p); st.Status != status.Restored || !reflect.DeepEqual(got.Runs, want.Runs) || st.OtherWeights != (model != tiny) {
			t.Errorf("%s with --check=full: %+v", name, st)
		}
	}
}

// Weights of another type are another form: exit code 3 with --strict, else a native start with the right tokens.
func TestWeightsOfAnotherType(t *testing.T) {
	tiny, rounded := testenv.Path(t, "runners", "reference", "models", "tiny"), filepath.Join(t.TempDir(), "tiny")
	if err := checkpoints.Half(tiny, rounded); err != nil {
		t.Fatal(err)
	}
	engine := func(model string) []string {
		return []string{testenv.Path(t, "build", "reference"), "run", "--model", model, "--batch-sizes", "8", "--batches", "8:4", "-o", "json"}
	}
	path, _ := materialized(t, engine(tiny)...)
	half := engine(rounded)
	want := decode(t, must(t, nil, "reference", half[1:]...))
	p, st := restored(t, nil, path, half...)
	if got := decode(t, p); st.Status != status.Native || !strings.Contains(st.Detail, "dtype=F16") || !reflect.DeepEqual(got.Runs, want.Runs) {
		t.Errorf("%s: %s, tokens %v, natively %v", st.Status, st.Detail, got.Runs, want.Runs)
	}
	if s := start(t, nil, "medusa", append([]string{"restore", "--strict", path, "--"}, half...)...); s.code != 3 || s.stdout != "" {
		t.Errorf("--strict: exit %d, output %q", s.code, s.stdout)
	}
}

// Both recordings take the same side of a branch, and another checkpoint takes the other one. Verification with that checkpoint refuses the artifact.
func TestBranchThatNoRecordingTakes(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo, path := testenv.Path(t, "build", "zoo"), filepath.Join(t.TempDir(), "x.medusa")
	env := func(number int) []string {
		return []string{fmt.Sprintf("ZOO_CHECKPOINT=%d", number), "ZOO_BAKES=branch"}
	}
	must(t, env(1), "medusa", "materialize", "-o", path, "--", zoo)
	must(t, env(2), "medusa", "verify", path, "--", zoo)
	if p := start(t, env(3), "medusa", "verify", path, "--", zoo); p.code == 0 || !strings.Contains(p.stderr, `graph "fork"`) {
		t.Errorf("exit %d: %s", p.code, p.stderr)
	}
}

// derived makes a checkpoint of the same shapes, with other words about itself and other values: each is multiplied by a number near one.
func derived(t *testing.T, from string, number int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), fmt.Sprintf("modèle fin %d", number))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	weights := read("model.safetensors")
	for at := 8 + binary.LittleEndian.Uint64(weights); at < uint64(len(weights)); at += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(weights[at:]))
		v *= 1 + 0.3*float32(math.Sin(float64(at)*float64(number)))
		binary.LittleEndian.PutUint32(weights[at:], math.Float32bits(v))
	}
	var config map[string]any
	if err := json.Unmarshal(read("config.json"), &config); err != nil {
		t.Fatal(err)
	}
	config["_name_or_path"], config["transformers_version"], config["torch_dtype"] = dir, fmt.Sprint(number), "float32"
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"model.safetensors": weights, "config.json": text, "tokenizer.json": read("tokenizer.json")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Graphs that hold a value made from weights are tied to these weights, by name: another checkpoint starts natively.
func TestGraphsThatHoldWeights(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	for _, tt := range []struct {
		bakes string
		tied  []string // in the reason; none: the artifact serves all
	}{
		{"", nil},
		{"parameter", []string{`byte 2 of graph "fork" node 5 kernel scale parameter 1`}},
		{"struct", []string{`byte 16 of graph "fork" node 7 kernel axpy parameter 0`}},
		{"buffer", []string{`graph "fork"`, "saved buffer alloc#"}},
		{"nodes", []string{`graph "fork"`, "nodes"}},
	} {
		t.Run(tt.bakes, func(t *testing.T) {
			t.Parallel()
			env := func(number int) []string {
				return []string{fmt.Sprintf("ZOO_CHECKPOINT=%d", number), "ZOO_BAKES=" + tt.bakes}
			}
			path := filepath.Join(t.TempDir(), "x.medusa")
			must(t, env(1), "medusa", "materialize", "-o", path, "--", zoo)
			art, err := artifacts.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if art.Identity.Has(artifacts.KeyModelCheckpoint) != (tt.tied != nil) {
				t.Errorf("identity %v: %s", art.Identity, art.Verification.Tied)
			}
			for _, text := range tt.tied {
				if !strings.Contains(art.Verification.Tied, text) {
					t.Errorf("no %q in %q", text, art.Verification.Tied)
				}
			}
			outputs := map[string]int{}
			for number := 1; number <= 3; number++ {
				_, want := zooOutput(t, must(t, env(number), "zoo"))
				if other := outputs[want]; other != 0 {
					t.Errorf("checkpoints %d and %d give the same outputs natively", number, other)
				}
				outputs[want] = number
				p, st := restored(t, env(number), path, zoo)
				isRestored, got := zooOutput(t, p)
				if isRestored != (number == 1 || tt.tied == nil) || got != want {
					t.Errorf("checkpoint %d: restored %v (%s %s), outputs as native: %v", number, isRestored, st.Reason, st.Detail, got == want)
				}
				if !isRestored && !strings.Contains(st.Detail, artifacts.KeyModelCheckpoint) {
					t.Errorf("checkpoint %d starts natively, because %s", number, st.Detail)
				}
			}
		})
	}
}
