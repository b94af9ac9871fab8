package simulate

import (
	"path/filepath"
	"testing"
)

// TestFigures runs every scenario that names published figures. A figure marked outside must stay outside: a change that
// brings it in is news for docs/reproduction.md.
func TestFigures(t *testing.T) {
	files, err := filepath.Glob("scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s, err := LoadScenario(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			found, err := s.Findings(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				t.Logf("%-28s published %-30s ours %s", f.Figure.ID, f.Published, f.Ours)
				if f.Within == f.Figure.Outside {
					t.Errorf("%s: within tolerance is %v, marked outside is %v", f.Figure.ID, f.Within, f.Figure.Outside)
				}
			}
		})
	}
}
