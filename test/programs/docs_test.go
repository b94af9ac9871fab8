package programs_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"medusa/test/programs"
	"medusa/test/testenv"
)

// The table of docs/fidelity.md names exactly the restorable things that programs have.
func TestFidelityTableNamesAllFeatures(t *testing.T) {
	page, err := os.ReadFile(testenv.Path(t, "docs", "fidelity.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:node|edge|attribute|function|pointer|parameter|template|graph|kernel|variable): [^`]+)`").FindAllStringSubmatch(string(page), -1) {
		named[m[1]] = true
	}
	for _, f := range programs.Features() {
		if !named[f] {
			t.Errorf("docs/fidelity.md does not name %q", f)
		}
		delete(named, f)
	}
	for f := range named {
		if !slices.Contains(programs.Features(), f) {
			t.Errorf("docs/fidelity.md names %q, which no program has", f)
		}
	}
}
