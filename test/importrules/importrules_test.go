// Package importrules holds the repository to its own map: the table of folders in docs/architecture.md says which folder may
// import which, and these tests compare it with go list's answer, in both directions. They also follow every link between
// pages.
package importrules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// testMachinery is the folder that only tests and its own packages may import.
const testMachinery = "test"

// only lists modules that a single folder may import.
var only = map[string]string{
	"github.com/ebitengine/purego": "internal/cuda",
	"github.com/google/renameio":   "internal/atomicfile",
	"github.com/spf13/cobra":       "cmd/medusa runners/reference",
	"oras.land/oras-go/v2":         "artifacts/oci",
}

// listed is a package of this module, with the imports of its code without tests.
type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "medusa/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 40 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

func TestFoldersImportWhatTheMapSays(t *testing.T) {
	for _, wrong := range compare(readMap(t), packages(t)) {
		t.Error(wrong)
	}
}

func TestWhatTheComparisonFinds(t *testing.T) {
	folders := map[string]imports{
		"graphir":     {},
		"artifacts":   {may: []string{"graphir"}},
		"cmd/medusa":  {anyProduct: true},
		testMachinery: {anyFolder: true},
	}
	good := []listed{
		{"medusa/graphir", []string{"medusa/graphir/graphpb", "fmt"}},
		{"medusa/graphir/graphpb", nil},
		{"medusa/artifacts", []string{"medusa/graphir"}},
		{"medusa/cmd/medusa", []string{"medusa/graphir", "medusa/artifacts"}},
		{"medusa/test/zoo", []string{"medusa/artifacts", "medusa/test/testenv"}},
		{"medusa/test/testenv", nil},
	}
	if wrong := compare(folders, good); wrong != nil {
		t.Errorf("nothing is wrong, reported: %q", wrong)
	}
	for want, packages := range map[string][]listed{
		"medusa/graphir imports medusa/artifacts: graphir may import –":                  append(good, listed{"medusa/graphir", []string{"medusa/artifacts"}}),
		"medusa/artifacts imports medusa/test/zoo: only tests may":                       append(good, listed{"medusa/artifacts", []string{"medusa/test/zoo"}}),
		"medusa/cmd/medusa imports medusa/test/testenv: only tests may":                  append(good, listed{"medusa/cmd/medusa", []string{"medusa/test/testenv"}}),
		"medusa/extra belongs to no folder of the map":                                   append(good, listed{"medusa/extra", nil}),
		"artifacts may import graphir, but none of its packages does: leave it out":      slices.Concat(good[:2], good[3:]),
		"graphir is in the map, and holds no package that the map could be held against": good[2:],
	} {
		if wrong := compare(folders, packages); !slices.Contains(wrong, want) {
			t.Errorf("want %q, reported: %q", want, wrong)
		}
	}
}

func TestModulesWithOneDoor(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			for module, doors := range only {
				if imp != module && !strings.HasPrefix(imp, module+"/") {
					continue
				}
				inside := false
				for _, door := range strings.Fields(doors) {
					path := "medusa/" + door
					inside = inside || p.ImportPath == path || strings.HasPrefix(p.ImportPath, path+"/")
				}
				if !inside {
					t.Errorf("%s imports %s, which only %s may", p.ImportPath, imp, doors)
				}
			}
		}
	}
}

// medusa pulls, inspects and supervises on machines without a driver or a dynamic linker: it must stay free of purego,
// whose importers are dynamically linked even with CGO_ENABLED=0.
func TestToolIsFreeOfTheDriverBinding(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "medusa/cmd/medusa").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if dep == "medusa/internal/cuda" || strings.HasPrefix(dep, "github.com/ebitengine/purego") {
			t.Errorf("cmd/medusa depends on %s", dep)
		}
	}
}
