package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/graphir"
)

// writeArtifact writes an artifact with stage times only.
func writeArtifact(t *testing.T, path, gpu, device string) {
	t.Helper()
	art := &artifacts.Artifact{
		Identity: artifacts.Identity{{Key: artifacts.KeyGPUName, Value: gpu}, {Key: artifacts.KeyModelConfig, Value: "sha256:00"}},
		Spec:     &graphir.Spec{},
		Stages: []artifacts.StageTimes{
			{Mode: "native", Device: device, Date: "2026-01-02", Stages: []artifacts.Stage{{Name: "weights", Seconds: 1}, {Name: "capture", Seconds: 3}}},
			{Mode: "restored", Device: device, Date: "2026-01-02", Stages: []artifacts.Stage{{Name: "weights", Seconds: 1}, {Name: "capture", Seconds: 0.5}}},
		},
		Created: time.Unix(0, 0).UTC(),
	}
	if err := artifacts.Write(path, art); err != nil {
		t.Fatal(err)
	}
}

// TestProfileFromArtifact: stage times and size come from the artifact, unless a simulated GPU measured them.
func TestProfileFromArtifact(t *testing.T) {
	dir := t.TempDir()
	writeArtifact(t, filepath.Join(dir, "real.medusa"), "NVIDIA H200", "NVIDIA H200")
	writeArtifact(t, filepath.Join(dir, "gpu.medusa"), "Simulated GPU", "NVIDIA H200")
	writeArtifact(t, filepath.Join(dir, "device.medusa"), "NVIDIA H200", "simulated")
	if err := os.WriteFile(filepath.Join(dir, "cut.medusa"), []byte("MEDUSA"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := "gpu: H200\nmodels:\n  m: {service_s: 1, artifact: %s.medusa}\n"
	p, err := parseProfiles(filepath.Join(dir, "p.yaml"), fmt.Appendf(nil, text, "real"))
	if err != nil {
		t.Fatal(err)
	}
	m := p.Models["m"]
	native, err := m.load(nativeStart, false)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := m.load(restoredStart, false)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "real.medusa"))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "native", native, 4)
	near(t, "restored", restored, 1.5)
	near(t, "size", m.ArtifactGB, float64(info.Size())/1e9)
	for name, what := range map[string]string{"gpu": "refuse", "device": "refuse", "cut": "artifact", "none": "no such file"} {
		_, err := parseProfiles(filepath.Join(dir, "p.yaml"), fmt.Appendf(nil, text, name))
		if err == nil || !strings.Contains(err.Error(), "p.yaml:3:") || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want %q at line 3", name, err, what)
		}
	}
}

// TestDocumentedFilesWork reads the example files of the documentation.
func TestDocumentedFilesWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(first string) string {
		var b strings.Builder
		in := false
		for l := range strings.SplitSeq(string(page), "\n") {
			in = (in && (l == "" || strings.HasPrefix(l, "    "))) || l == first
			if in {
				b.WriteString(strings.TrimPrefix(l, "    ") + "\n")
			}
		}
		return b.String()
	}
	dir := t.TempDir()
	writeArtifact(t, filepath.Join(dir, "a.medusa"), "NVIDIA H200", "NVIDIA H200")
	profiles, err := parseProfiles(filepath.Join(dir, "profiles.yaml"), []byte(block("    gpu: H200")))
	if err != nil {
		t.Fatal(err)
	}
	if len(profiles.Models) != 1 {
		t.Fatalf("%d models in the documented profiles", len(profiles.Models))
	}
	// The page's profiles have one model, and the scenario needs two.
	if err := os.WriteFile(filepath.Join(dir, "profiles.yaml"), []byte(testProfiles), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := parseScenario(filepath.Join(dir, "s.yaml"), []byte(block("    title: two models on four GPUs")))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Compare) != 2 || len(s.Functions) != 2 {
		t.Errorf("%d variants and %d functions in the documented scenario", len(s.Compare), len(s.Functions))
	}
}
