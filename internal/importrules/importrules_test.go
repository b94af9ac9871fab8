// Package importrules holds the architecture's import rules as a test (docs/architecture.md, the table of folders).
package importrules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// allowed lists, for each folder, the folders of this module that its packages may import, tests aside. A folder may
// always import itself. Folders not listed (tests, tools) may import anything.
var allowed = map[string][]string{
	"graphir":                    {},
	"interpose":                  {},
	"kvprofile":                  {"graphir"},
	"artifacts":                  {"graphir", "kvprofile", "internal/spill"},
	"artifacts/layer":            {"artifacts"},
	"artifacts/store":            {"artifacts"},
	"artifacts/trust":            {},
	"artifacts/oci":              {"artifacts", "artifacts/store", "artifacts/trust"},
	"restore/digest":             {},
	"restore/devicehash":         {"internal/cuda", "restore/digest"},
	"restore/status":             {},
	"restore/supervisor":         {"interpose", "restore/status", "artifacts", "artifacts/layer", "artifacts/store"},
	"restore":                    {"graphir", "artifacts", "kvprofile", "internal/cuda", "restore/digest", "restore/devicehash", "restore/status"},
	"materialize":                {"interpose", "graphir", "kvprofile", "artifacts", "artifacts/layer", "restore/digest", "restore/status", "internal/cubin", "internal/spill"},
	"internal/cuda":              {},
	"internal/cuda/probe":        {"internal/cuda", "internal/cuda/probe/result"},
	"internal/cuda/probe/result": {},
	"doctor":                     {"artifacts", "graphir", "inspect", "interpose", "internal/cuda/probe/result", "internal/printable"},
	"internal/cubin":             {},
	"internal/printable":         {},
	"internal/spill":             {},
	"runners/simgpu":             {},
	"runners/reference":          {"internal/cuda", "restore", "artifacts"},
	"inspect":                    {"graphir", "artifacts", "internal/printable"},
	"schedule":                   {},
	"simulate":                   {"schedule", "artifacts"},
}

// only lists modules that a single folder may import.
var only = map[string]string{
	"github.com/ebitengine/purego": "internal/cuda",
	"github.com/spf13/cobra":       "cmd/medusa runners/reference",
	"oras.land/oras-go/v2":         "artifacts/oci",
}

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
	if len(all) < len(allowed)/2 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

// folder returns the most specific listed folder that holds the package.
func folder(pkg string) string {
	pkg = strings.TrimPrefix(pkg, "medusa/")
	best := ""
	for f := range allowed {
		if (pkg == f || strings.HasPrefix(pkg, f+"/")) && len(f) > len(best) {
			best = f
		}
	}
	return best
}

func TestFoldersImportOnlyWhatTheyMay(t *testing.T) {
	for _, p := range packages(t) {
		from := folder(p.ImportPath)
		if from == "" {
			continue
		}
		ok := map[string]bool{from: true}
		for _, f := range allowed[from] {
			ok[f] = true
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, "medusa/") {
				continue
			}
			to := folder(imp)
			if to == "" {
				to = strings.TrimPrefix(imp, "medusa/")
			}
			if !ok[to] {
				t.Errorf("%s imports %s: %s may import %v", p.ImportPath, imp, from, allowed[from])
			}
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
