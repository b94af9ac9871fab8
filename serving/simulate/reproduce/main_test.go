package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/serving/simulate"
)

// slow are the scenarios that take most of the time. make reproduce runs all scenarios and compares the whole page.
var slow = []string{"torpor-fig12.yaml", "torpor-node-160.yaml", "torpor-node-480.yaml", "torpor-node-560.yaml"}

// TestFigures compares the published figures with the simulator. A figure marked outside or undecided must stay so: a change that
// moves it inside belongs on the page. The page must show exactly these numbers.
func TestFigures(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reproduction.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := list("../scenarios")
	if err != nil {
		t.Fatal(err)
	}
	quick := slices.DeleteFunc(files, func(f string) bool { return slices.Contains(slow, filepath.Base(f)) })
	all, err := collect(quick)
	if err != nil {
		t.Fatal(err)
	}
	within := 0
	for _, o := range all {
		for _, f := range o.findings {
			if f.Verdict == simulate.Within {
				within++
			}
			if !f.Expected() {
				t.Errorf("%s: published %s, ours %s: %s is not what the scenario says", f.Figure.ID, f.Published, f.Ours, f.Verdict)
			}
		}
		if !strings.Contains(string(page), section(o)) {
			t.Errorf("docs/reproduction.md shows other numbers for %s (run make reproduce-page)", o.file)
		}
	}
	if within < 25 {
		t.Errorf("%d figures within tolerance, want 25", within)
	}
	t.Run("ten models", func(t *testing.T) { tenModels(t, all) })
}

// TestScenariosAreHeldByIntervals: ten seeds decide each row, except for a replayed trace, which is not random. IDs are unique,
// and the page names each claim.
func TestScenariosAreHeldByIntervals(t *testing.T) {
	files, err := list("../scenarios")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/reproduction.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		s, err := simulate.LoadScenario(file)
		if err != nil {
			t.Fatal(err)
		}
		if s.Seeds != 10 && s.Workload.Kind != "trace" {
			t.Errorf("%s: %d seeds, want 10", file, s.Seeds)
		}
		for _, f := range s.Figures {
			if seen[f.ID] {
				t.Errorf("%s: id %s is used twice", file, f.ID)
			}
			seen[f.ID] = true
			if !strings.Contains(string(page), "| "+f.Claim+" |") {
				t.Errorf("%s: docs/reproduction.md lacks %s (run make reproduce-page)", file, f.ID)
			}
		}
	}
}

// tenModels: Medusa and locality-aware scheduling each shorten the overload tail, and together they shorten it most. The
// confidence intervals at 0.8 requests a second do not touch.
func tenModels(t *testing.T, all []outcome) {
	for _, o := range all {
		if o.file != "ten-models.yaml" {
			continue
		}
		var last simulate.Estimate
		for _, name := range []string{"FCFS, native, 0.8/s", "FCFS, Medusa, 0.8/s", "LALBO3, native, 0.8/s", "LALBO3, Medusa, 0.8/s"} {
			for i := range o.result.Variants {
				v := &o.result.Variants[i]
				if v.Name != name {
					continue
				}
				e := v.Estimate(func(s *simulate.Summary) float64 { return s.TTFTP99 })
				if last.Mean > 0 && e.Mean+e.Half >= last.Mean-last.Half {
					t.Errorf("%s: p99 %.1f ± %.1f is not below %.1f ± %.1f", name, e.Mean, e.Half, last.Mean, last.Half)
				}
				last = e
			}
		}
		if last.Mean == 0 {
			t.Error("no variants at 0.8/s")
		}
		return
	}
	t.Error("no scenario ten-models.yaml")
}

func TestRenewNeedsItsMarks(t *testing.T) {
	if _, err := renew("no marks", nil); err == nil || !strings.Contains(err.Error(), "renew page") {
		t.Errorf("got %v", err)
	}
}
