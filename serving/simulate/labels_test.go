package simulate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "accept the labels")

// The example of docs/kubernetes/plan is the output of the command.
func TestLabels(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "kubernetes", "plan")
	s, err := LoadScenario(filepath.Join(folder, "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := MakePlan(s, 1, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.WriteLabels(&out, []string{"gpu-a", "gpu-b", "gpu-c"}); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join(folder, "labels.yaml")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, out.Bytes()) {
		t.Errorf("labels:\n%s\nwant:\n%s", out.String(), want)
	}
	// Each copy of the plan is a label, and there are no other labels.
	copies := 0
	for _, c := range p.Choices {
		copies += len(c.Nodes)
	}
	if got := strings.Count(out.String(), `: "true"`); got != copies || copies == 0 {
		t.Errorf("%d labels for %d copies", got, copies)
	}
	for _, names := range [][]string{{"gpu-a"}, {"gpu-a", "gpu-b", "gpu-b"}, {"gpu-a", "gpu-b", "gpu c"}, {"gpu-a", "gpu-b", ""}} {
		if err := p.WriteLabels(&out, names); err == nil {
			t.Errorf("nodes %q are taken", names)
		}
	}
}

// Labels are valid and differ for models of any name.
func TestLabelsOfAnyName(t *testing.T) {
	valid := regexp.MustCompile(`^artifact\.medusa\.io/[A-Za-z0-9][-A-Za-z0-9_.]{0,61}[A-Za-z0-9]$`)
	seen := map[string]string{}
	for _, model := range []string{"llama", "Qwen/Qwen3-8B", "Qwen-Qwen3-8B", "Qwen:Qwen3-8B", "-", "", "ä", "a ", strings.Repeat("long", 20), strings.Repeat("long", 20) + "er", "end-"} {
		l := label(model)
		if !valid.MatchString(l) || seen[l] != "" {
			t.Errorf("%q has the label %q, as %q has", model, l, seen[l])
		}
		seen[l] = model
	}
	if label("llama") != "artifact.medusa.io/llama" {
		t.Errorf("a plain name becomes %q", label("llama"))
	}
}
