package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// A row that no longer matches the code would end the run of all of them.
func TestRowsMatchTheCode(t *testing.T) {
	root := testenv.Path(t, ".")
	markers, err := findMarkers(root)
	if err != nil {
		t.Fatal(err)
	}
	used, rows := map[string]bool{}, map[string]bool{}
	for _, m := range all() {
		if rows[m.String()] {
			t.Errorf("%s: stands twice in the tables", &m)
		}
		rows[m.String()] = true
		used[m.Marker] = true
		at, ok := markers[m.Marker]
		if !ok {
			t.Errorf("%s: no marker has this name", &m)
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, at.path))
		if err != nil {
			t.Fatal(err)
		}
		changed, err := m.mutate(source, at)
		if err != nil {
			t.Errorf("%s: %v", &m, err)
		} else if bytes.Equal(changed, source) {
			t.Errorf("%s: changes nothing", &m)
		}
	}
	for name, at := range markers {
		if !used[name] {
			t.Errorf("%s: marker %q has no row", at.path, name)
		}
	}
}

// A test that was renamed would let its mutants pass for broken ones an hour later.
func TestRowsNameTests(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, m := range all() {
		if filepath.Ext(m.Package) == ".py" {
			source, err := os.ReadFile(testenv.Path(t, m.Package))
			class, method, _ := strings.Cut(m.Test, ".")
			if err != nil || !regexp.MustCompile(`(?ms)^class `+class+`\(.*?^    def `+method+`\(self\)`).Match(source) {
				t.Errorf("%s: %s has no test %s (%v)", &m, m.Package, m.Test, err)
			}
			continue
		}
		if filepath.Ext(m.Package) == ".c" {
			source, err := os.ReadFile(testenv.Path(t, m.Package))
			if err != nil || !bytes.Contains(source, []byte("\nvoid "+m.Test+"(void)\n")) {
				t.Errorf("%s: %s has no function %s (%v)", &m, m.Package, m.Test, err)
			}
			continue
		}
		names, err := filepath.Glob(filepath.Join(testenv.Path(t, m.Package), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var source []byte
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source = append(source, data...)
		}
		for _, one := range strings.Split(m.Test, "|") {
			want := regexp.MustCompile("^(" + strings.Split(one, "/")[0] + ")$")
			found := false
			for _, test := range declared.FindAllSubmatch(source, -1) {
				found = found || want.Match(test[1])
			}
			if !found {
				t.Errorf("%s: no test of %s matches %s", &m, m.Package, one)
			}
		}
	}
}
