package serve

import (
	"fmt"
	"slices"
	"testing"
)

func TestPromptsAreDistinctAndRepeat(t *testing.T) {
	a, err := Prompts(7, 256, 512, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Prompts(7, 256, 512, 2, 8)
	other, _ := Prompts(8, 256, 512, 2, 8)
	seen := map[string]bool{}
	for i := range a {
		if !slices.Equal(a[i], b[i]) {
			t.Fatalf("prompt %d differs between two calls", i)
		}
		if len(a[i]) < 2 || len(a[i]) > 8 || slices.Max(a[i]) >= 512 {
			t.Errorf("prompt %d is %v", i, a[i])
		}
		seen[fmt.Sprint(a[i])] = true
	}
	if len(seen) != 256 {
		t.Errorf("%d of 256 prompts are distinct", len(seen))
	}
	if slices.EqualFunc(a, other, slices.Equal) {
		t.Error("another seed gave the same prompts")
	}
	if _, err := Prompts(1, 5, 4, 1, 1); err == nil {
		t.Error("5 distinct prompts of one token out of 4 were found")
	}
}

func TestParseRuns(t *testing.T) {
	got, err := ParseRuns("1:33,2,8:4", 5)
	if want := []Run{{1, 33}, {2, 5}, {8, 4}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"", "0", "x", "1:", "1:-2", "1,,2"} {
		if runs, err := ParseRuns(bad, 5); err == nil {
			t.Errorf("%q was read as %v", bad, runs)
		}
	}
}
