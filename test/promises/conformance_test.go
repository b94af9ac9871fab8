package promises

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// docs/conformance.md is the output of a run of the cases today, on a simulated machine that leaves no case out, beside the output of a run on a real GPU
// (docs/results/conformance-h200.txt). A case that is added, renamed or fails makes another page.
func TestConformancePageIsARun(t *testing.T) {
	testenv.Build(t, "build/conformance")
	cmd := exec.Command(testenv.Path(t, "build", "conformance"), "-o", "md")
	cmd.Env = append(testenv.Simulated(t), "SIMGPU_DEVICES=2", "SIMGPU_MULTICAST=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.ReadFile(testenv.Path(t, "docs", "results", "conformance-h200.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := withRealGPU(string(out), string(run))
	path := testenv.Path(t, "docs", "conformance.md")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(string(page), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(have) || have[i] != line {
			t.Fatalf("line %d of a run is %q; renew the page with\n\tgo test ./test/promises -run TestConformancePage -update", i+1, line)
		}
	}
	if len(page) != len(want) {
		t.Errorf("the page has %d bytes, a run printed %d", len(page), len(want))
	}
}

// withRealGPU fills the last column of a page from the table of a run on a GPU, by the names of the cases. Cases that the run lacked
// stay as they are.
func withRealGPU(page, run string) string {
	found := map[string]string{}
	for line := range strings.Lines(run) {
		if cells := strings.SplitN(strings.TrimSpace(line), "|", 3); len(cells) == 3 {
			found[strings.TrimSpace(cells[0])] = strings.TrimSpace(cells[2])
		}
	}
	var out strings.Builder
	for line := range strings.Lines(page) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && found[name] != "" && strings.HasSuffix(rest, "not run |\n") {
			line = "| " + name + " | " + strings.TrimSuffix(rest, "not run |\n") + found[name] + " |\n"
		}
		out.WriteString(line)
	}
	return out.String()
}
