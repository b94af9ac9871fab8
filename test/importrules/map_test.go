package importrules

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository's root.
var root = filepath.Join("..", "..")

// imports are the packages that a folder may import besides itself, tests aside.
type imports struct {
	may        []string
	anyProduct bool // all packages but the test machinery
	anyFolder  bool
	noGo       bool // holds no Go package
}

func (i imports) String() string {
	if len(i.may) == 0 {
		return "–"
	}
	return strings.Join(i.may, ", ")
}

// A row of the map: a folder as code, perhaps with a link to its page, its role, and its allowed imports.
var row = regexp.MustCompile("^\\| \\[?`([^`]+)`(?:\\]\\([^)]*\\))? \\| .* \\| ([^|]*) \\|$")

// readMap reads the table of folders in docs/architecture.md, whose last column is headed "may import".
func readMap(t *testing.T) map[string]imports {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| folder | role | may import |\n|---|---|---|\n")
	table, _, ends := strings.Cut(table, "\n\n")
	if !found || !ends {
		t.Fatal("docs/architecture.md has no table of folders")
	}
	folders := map[string]imports{}
	for line := range strings.Lines(table) {
		cells := row.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if cells == nil {
			t.Fatalf("docs/architecture.md: not a row of the table of folders: %s", line)
		}
		folder, may := cells[1], cells[2]
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			t.Errorf("docs/architecture.md: %v", err)
		}
		if _, twice := folders[folder]; twice {
			t.Errorf("docs/architecture.md: %s has two rows", folder)
		}
		switch may {
		case "–":
			folders[folder] = imports{}
		case "no Go":
			folders[folder] = imports{noGo: true}
		case "everything":
			folders[folder] = imports{anyFolder: true}
		case "everything but " + testMachinery:
			folders[folder] = imports{anyProduct: true}
		default:
			folders[folder] = imports{may: strings.Split(may, ", ")}
		}
	}
	return folders
}

// folderOf returns the most specific folder that holds the package, or "".
func folderOf(folders map[string]imports, pkg string) string {
	pkg = strings.TrimPrefix(pkg, "medusa/")
	best := ""
	for f := range folders {
		if (pkg == f || strings.HasPrefix(pkg, f+"/")) && len(f) > len(best) {
			best = f
		}
	}
	return best
}

// compare returns the differences between the map and the packages.
func compare(folders map[string]imports, packages []listed) (wrong []string) {
	used := map[string]map[string]bool{}
	for _, p := range packages {
		from := folderOf(folders, p.ImportPath)
		if from == "" {
			wrong = append(wrong, fmt.Sprintf("%s belongs to no folder of the map", p.ImportPath))
			continue
		}
		if used[from] == nil {
			used[from] = map[string]bool{}
		}
		rule := folders[from]
		for _, imported := range p.Imports {
			to := folderOf(folders, imported)
			if !strings.HasPrefix(imported, "medusa/") || to == from {
				continue
			}
			used[from][to] = true
			switch {
			case rule.anyFolder:
			case to == testMachinery:
				wrong = append(wrong, fmt.Sprintf("%s imports %s: only tests may", p.ImportPath, imported))
			case !rule.anyProduct && !slices.Contains(rule.may, to):
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s may import %v", p.ImportPath, imported, from, rule))
			}
		}
	}
	for _, f := range slices.Sorted(maps.Keys(folders)) {
		if has := used[f] != nil; has == folders[f].noGo {
			if has {
				wrong = append(wrong, fmt.Sprintf("%s holds Go packages, and the map says that it does not", f))
			} else {
				wrong = append(wrong, fmt.Sprintf("%s is in the map, and holds no package that the map could be held against", f))
			}
		}
		for _, to := range folders[f].may {
			if !used[f][to] {
				wrong = append(wrong, fmt.Sprintf("%s may import %s, but none of its packages does: leave it out", f, to))
			}
		}
	}
	return wrong
}
