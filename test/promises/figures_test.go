package promises

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"medusa/test/testenv"
)

var (
	// A measured figure: a time, a rate or a size of a file.
	figure = regexp.MustCompile(`\b\d[\d.,]* ?(ms|ns|µs|minutes|GB/s|MB/s|MB|s of processor time)\b`)
	// A command that makes figures: in backquotes, or a line of its own.
	maker = regexp.MustCompile("(?m)(`|^    )([A-Z_]+=\\S+ )*(make|go test|go run|medusa|scripts/|build/|runners/|gpu-kit/)")
)

// unmade returns the figures of a page in whose section no command stands.
func unmade(page string) (out []string, figures int) {
	for _, section := range regexp.MustCompile(`(?m)^#+ `).Split(page, -1) {
		for _, line := range strings.Split(section, "\n") {
			if !figure.MatchString(line) {
				continue
			}
			figures++
			if !maker.MatchString(section) {
				out = append(out, line)
			}
		}
	}
	return out, figures
}

// If a page has figures, the command that makes them stands in the same section.
func TestFiguresHaveACommand(t *testing.T) {
	pages, err := filepath.Glob(testenv.Path(t, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(testenv.Path(t, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, path := range append(append(pages, more...), testenv.Path(t, "README.md")) {
		if filepath.Base(path) == "reproduction.md" { // all of it is made by make reproduce-page
			continue
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines, figures := unmade(string(page))
		total += figures
		for _, line := range lines {
			t.Errorf("%s: no command in the section: %s", filepath.Base(path), line)
		}
	}
	if total == 0 {
		t.Error("no figure was found")
	}
}

func TestUnmadeFigures(t *testing.T) {
	page := "# A\n\nIt took 7 ms (`make bench`), and 9 MB.\n\n## B\n\nIt took 2,500 ms.\nIt took longer.\n"
	if lines, figures := unmade(page); figures != 2 || len(lines) != 1 || lines[0] != "It took 2,500 ms." {
		t.Errorf("%d figures, without a command: %q", figures, lines)
	}
}
