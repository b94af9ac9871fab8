package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/test/testenv"
)

// Graphs that replay well on memory that happens to be right are refused, each with its own reason. Similar graphs that are sound
// are not.
func TestHarshGraphs(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	for _, tt := range []struct {
		kind string
		want []string // in the error; none: the artifact is made
	}{
		{"stale", []string{`graph "stale-8"`, `output "rows"`, "row 3"}},
		{"direct", []string{`graph "direct-8"`, `output "rows"`, "row 3"}},
		{"stepped", []string{`graph "stepped-8"`, `output "rows"`, "row 6", "written by the engine's step without a graph"}},
		{"prepared", nil},
		{"temporary", []string{`graph "temporary-8"`, `output "rows"`, "row 0"}},
		{"spread", nil},
		{"nan", []string{`graph "nan-8"`, `output "rows"`, "row 0", "NaN or Inf"}},
		{"deaf", []string{`graph "deaf-8"`, `output "rows" row 0`, "does not change with other inputs"}},
		{"flags", nil},
		{"forgetful", []string{`graph "forgetful-8"`, `output "rows" row 0`, "does not change with another KV cache"}},
		{"drift", []string{`graph "drift-8"`, "node 1 (kernel)", "parameter 0 of add"}},
		{"misled", []string{`graph "misled-8"`, "node 1 (kernel)", "byte 0 of parameter 0 of axpy is", "in a native start"}},
		{"leftover", nil},
		{"filled", []string{`weight "padding"`, "changes before ready, by work that a restored start skips"}},
		{"renewed", nil},
		{"told", nil},
		{"scratch", nil},
		{"kept", []string{`graph "kept-8"`, `output "rows"`, "row 0", "differs between two native replays"}},
		{"endless", []string{`graph "endless-8"`, "not done after"}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.medusa")
			env := []string{"ZOO_HARSH=" + tt.kind, "MEDUSA_REPLAY_SECONDS=3"}
			p := start(t, env, "medusa", "materialize", "-o", path, "--", zoo)
			if (p.code == 0) != (tt.want == nil) {
				t.Fatalf("exit %d:\n%s", p.code, p.stderr)
			}
			for _, text := range tt.want {
				if !strings.Contains(p.stderr, text) {
					t.Errorf("no %q in:\n%s", text, p.stderr)
				}
			}
		})
	}
}

// Floats that are added in an order that rarely differs: the artifact is made if all replays had the same order. It is refused if
// one had another order, mostly with that reason.
func TestRareOrder(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	for range 100 { // in 130 starts, 25 saw another order
		p := start(t, []string{"ZOO_HARSH=rare"}, "medusa", "materialize", "-o", filepath.Join(t.TempDir(), "x.medusa"), "--", zoo)
		if p.code == 0 {
			continue
		}
		if !strings.Contains(p.stderr, `graph "rare-8"`) {
			t.Fatalf("exit %d:\n%s", p.code, p.stderr)
		}
		// If both native replays had one order and both restored ones another, the refusal cannot say why they differ.
		if strings.Contains(p.stderr, "order") {
			return
		}
	}
	t.Error("a hundred times, no replay added up in another order than the one before it")
}

// Floats that are added in an order that often differs: native replays measure by how much, and restored ones have to keep to that.
func TestSumsInAnyOrder(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo, path := testenv.Path(t, "build", "zoo"), filepath.Join(t.TempDir(), "x.medusa")
	for range 30 {
		p := start(t, []string{"ZOO_HARSH=sum"}, "medusa", "materialize", "-o", path, "--", zoo)
		if p.code != 0 {
			// Replays that happened to agree measure a bound that the next ones break.
			inOneOrder := strings.Contains(p.stderr, "restored and native differ") || strings.Contains(p.stderr, "or on the order of work")
			if !strings.Contains(p.stderr, `graph "sum-8"`) || !inOneOrder {
				t.Fatalf("exit %d:\n%s", p.code, p.stderr)
			}
			continue
		}
		art, err := artifacts.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range art.Verification.Graphs {
			if g.Label == "sum-8" && !g.NativeDeterministic && g.Canary == "" {
				return
			}
		}
	}
	t.Error("thirty times, no native replays varied")
}

// A start's canary compares with a replay after the self test, which has written to the KV cache, also where no check looks.
func TestCanaryOfLargeCache(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo, path := testenv.Path(t, "build", "zoo"), filepath.Join(t.TempDir(), "x.medusa")
	env := []string{"ZOO_HARSH=far", "ZOO_CACHE=134217728"}
	must(t, env, "medusa", "materialize", "-o", path, "--", zoo)
	_, want := zooOutput(t, must(t, env, "zoo"))
	p, st := started(t, env, []string{"--check=canary"}, path, []string{zoo})
	if isRestored, got := zooOutput(t, p); !isRestored || got != want {
		t.Errorf("restored %v (%s %s), outputs as native: %v", isRestored, st.Reason, st.Detail, got == want)
	}
}

// Inputs that the engine writes before a replay are no results of a kernel.
func TestNothingComputes(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	path := filepath.Join(t.TempDir(), "x.medusa")
	p := must(t, []string{"ZOO_HARSH=prepared", "SIMGPU_COMPUTE=off"}, "medusa", "materialize", "-o", path, "--", testenv.Path(t, "build", "zoo"))
	if !strings.Contains(p.stdout, "not checked (no output depends on inputs or KV cache)") {
		t.Errorf("results of kernels that do nothing:\n%s", p.stdout)
	}
}
