package promises

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"medusa/internal/test/testenv"
)

// docs/conformance.md is the output of a run of the cases today. A case that is added, renamed or fails makes another page.
func TestConformancePageIsARun(t *testing.T) {
	testenv.Build(t, "build/conformance")
	cmd := exec.Command(testenv.Path(t, "build", "conformance"), "-o", "md")
	cmd.Env = testenv.Simulated(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(testenv.Path(t, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(string(page), "\n")
	for i, line := range strings.Split(string(out), "\n") {
		if i >= len(have) || have[i] != line {
			t.Fatalf("line %d of a run is %q; renew the page with\n\tLD_LIBRARY_PATH=build/simulated build/conformance -o md > docs/conformance.md", i+1, line)
		}
	}
	if len(page) != len(out) {
		t.Errorf("the page has %d bytes, a run printed %d", len(page), len(out))
	}
}
