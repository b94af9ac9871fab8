package promises

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"medusa/test/testenv"
)

// A tour that promises one hour names files that exist, each once, in at most so many lines.
const (
	tourFiles = 21
	tourLines = 4500
)

var tourStop = regexp.MustCompile(`(?m)^\d+\. \[([^\]]+)\]\(\.\./([^)]+)\)`)

func TestTourTakesAnHour(t *testing.T) {
	page, err := os.ReadFile(testenv.Path(t, "docs", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	stops, lines := tourStop.FindAllSubmatch(page, -1), 0
	seen := map[string]bool{}
	for _, stop := range stops {
		name := string(stop[2])
		if string(stop[1]) != name || seen[name] {
			t.Errorf("docs/tour.md: the link %q leads to %q, or is there twice", stop[1], name)
		}
		seen[name] = true
		source, err := os.ReadFile(testenv.Path(t, name))
		if err != nil {
			t.Error(err)
		}
		lines += bytes.Count(source, []byte("\n"))
	}
	if len(stops) != tourFiles || lines > tourLines {
		t.Errorf("docs/tour.md names %d files of %d lines, want %d of at most %d", len(stops), lines, tourFiles, tourLines)
	}
}
