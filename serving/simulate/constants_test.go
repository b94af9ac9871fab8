package simulate

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// TestConstantsFollow derives the load times that follow from the published table or from other constants.
func TestConstantsFollow(t *testing.T) {
	p99, err := readPublished("published/medusa-fig11.csv", "medusa-fig11.csv", "ttft_p99")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"medusa-a100.yaml", "medusa-a100-rate1.yaml"} {
		p, err := loadProfiles(filepath.Join("profiles", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"llama2-7b", "qwen1.5-4b"} {
			m := p.Models[name]
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > 0.0011 {
					t.Errorf("%s, %s: %s is %.3f, want %.3f", file, name, what, got, want)
				}
			}
			near("first load without graphs", m.Observed[noGraphsStart].First, m.Observed[nativeStart].First-m.Stages[nativeStart]["capture"])
			for _, st := range []Strategy{noGraphsStart, restoredStart} {
				v := []float64{p99[name+" "+string(st)+" 5"], p99[name+" "+string(st)+" 7"], p99[name+" "+string(st)+" 9"]}
				slices.Sort(v)
				near("later load "+string(st), m.Observed[st].Later, v[1]-0.004)
			}
		}
	}
}
