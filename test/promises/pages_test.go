package promises

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// A test as pages name it: the folder of its package, the function, and for one with scripts the script.
var named = regexp.MustCompile("`([a-z0-9_/]+)\\.((?:Test|Fuzz|Example)[A-Za-z0-9_]*)(?:/([a-z]+))?`")

// functions lists the functions of a folder's test files that go test runs.
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (fn.Type.Params.NumFields() == 1 || strings.HasPrefix(fn.Name.Name, "Example")) {
				out[fn.Name.Name] = true
			}
		}
	}
	return out
}

// missing returns the tests that a page names and that are not there, and the rows of its tables of promises that name none.
func missing(t *testing.T, root, page string) (wrong []string, count int) {
	t.Helper()
	have := map[string]map[string]bool{}
	inTable := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		found := named.FindAllStringSubmatch(line, -1)
		switch {
		case strings.HasPrefix(line, "|") && strings.HasSuffix(line, "| test |"):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && len(found) == 0 && !strings.HasPrefix(line, "|---"):
			wrong = append(wrong, "no test: "+line)
		}
		for _, m := range found {
			dir := filepath.Join(root, m[1])
			if have[dir] == nil {
				have[dir] = functions(t, dir)
			}
			count++
			if !have[dir][m[2]] {
				wrong = append(wrong, "not there: "+m[0])
			}
			if m[3] != "" {
				if _, err := os.Stat(filepath.Join(dir, "testdata", "script", m[3]+".txtar")); err != nil {
					wrong = append(wrong, "not there: "+m[0])
				}
			}
		}
	}
	return wrong, count
}

// Each promise of these pages names a test, and each test that they name is there.
func TestPromisesNameTheirTests(t *testing.T) {
	for name, least := range map[string]int{"docs/promises.md": 10, "docs/threat-model.md": 10, "docs/engines.md": 2} {
		page, err := os.ReadFile(testenv.Path(t, name))
		if err != nil {
			t.Fatal(err)
		}
		wrong, count := missing(t, testenv.Root(t), string(page))
		for _, w := range wrong {
			t.Errorf("%s: %s", name, w)
		}
		if count < least {
			t.Errorf("%s names %d tests only", name, count)
		}
	}
}

func TestWhatIsMissed(t *testing.T) {
	page := "| promise | test |\n|---|---|\n| kept | `test/promises.TestWhatIsMissed` |\n| idle | none |\n| lost | `test/promises.TestLost` |\n\n" +
		"Text without a test, and `cmd/medusa.TestScripts/nothere`.\n"
	wrong, count := missing(t, testenv.Root(t), page)
	if strings.Join(wrong, "\n") != "no test: | idle | none |\nnot there: `test/promises.TestLost`\nnot there: `cmd/medusa.TestScripts/nothere`" || count != 3 {
		t.Errorf("%d tests named, wrong: %q", count, wrong)
	}
}
