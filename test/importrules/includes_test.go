package importrules

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	include    = regexp.MustCompile(`(?m)^#include "(?:([a-z]+)/)?[a-z0-9_]+\.h"`)
	includeRow = regexp.MustCompile("^\\| `([a-z]+)` \\| .* \\| ([^|]*) \\|$")
)

// The driver's folders include each other's headers as the table in simgpu/README.md says, and each only from rows above its
// own: there is no circle.
func TestIncludesOfTheSimulatedDriver(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "simgpu", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| folder | holds | includes |\n|---|---|---|\n")
	table, _, ends := strings.Cut(table, "\n\n")
	if !found || !ends {
		t.Fatal("simgpu/README.md has no table of the driver's folders")
	}
	above := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := includeRow.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if cells == nil {
			t.Fatalf("simgpu/README.md: not a row of the driver's folders: %s", line)
		}
		folder := cells[1]
		var want []string
		if cells[2] != "–" {
			want = strings.Split(cells[2], ", ")
		}
		if got := included(t, folder); !slices.Equal(got, want) {
			t.Errorf("simgpu/driver/%s includes %q, simgpu/README.md says %q", folder, got, want)
		}
		for _, w := range want {
			if !above[w] {
				t.Errorf("simgpu/driver/%s includes %s, which is no row above its own", folder, w)
			}
		}
		above[folder] = true
	}
	entries, err := os.ReadDir(filepath.Join(root, "simgpu", "driver"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || !above[e.Name()] {
			t.Errorf("simgpu/driver/%s has no row in simgpu/README.md", e.Name())
		}
	}
}

// included returns the other folders whose headers the files of a folder include, in alphabetical order.
func included(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "simgpu", "driver", folder, "*.[ch]"))
	if err != nil || len(files) == 0 {
		t.Fatalf("simgpu/driver/%s holds %d files: %v", folder, len(files), err)
	}
	others := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range include.FindAllStringSubmatch(string(text), -1) {
			if to := match[1]; to != "" && to != folder {
				others[to] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(others))
}
