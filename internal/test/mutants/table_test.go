package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"medusa/internal/test/testenv"
)

// A row that no longer matches its file would end the run of all of them.
func TestRowsMatchTheirFiles(t *testing.T) {
	for _, m := range slices.Concat(table, nodes, shipping, large, attack) {
		data, err := os.ReadFile(testenv.Path(t, m.File))
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if n := strings.Count(string(data), m.Old); n != 1 {
			t.Errorf("%s: %s holds the text to change %d times, want once", m.Name, m.File, n)
		}
		if m.Old == m.New {
			t.Errorf("%s: changes nothing", m.Name)
		}
	}
}
