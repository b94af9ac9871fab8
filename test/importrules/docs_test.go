package importrules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"medusa/test/testenv"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)

// Every page can be reached from the README, and every link between pages leads somewhere.
func TestPagesAreReachable(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.md")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		testenv.Skip(t, testenv.Git)
	}
	reached := map[string]bool{}
	for next := []string{"README.md"}; len(next) > 0; {
		page := next[0]
		next = next[1:]
		if reached[page] {
			continue
		}
		reached[page] = true
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			to := filepath.Join(filepath.Dir(page), match[1])
			if info, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
				continue
			} else if info.IsDir() {
				to = filepath.Join(to, "README.md")
			}
			if strings.HasSuffix(to, ".md") {
				next = append(next, to)
			}
		}
	}
	for _, page := range strings.Fields(string(out)) {
		if !reached[page] {
			t.Errorf("%s cannot be reached from README.md", page)
		}
	}
}
