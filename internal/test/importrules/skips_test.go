package importrules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test that is skipped shows nothing, so each skip goes through testenv.Skip, which has the list of tests that may be skipped.
func TestSkipsAreListed(t *testing.T) {
	skips := []string{"Skip", "Skipf", "SkipNow"}
	list := filepath.Join(root, "internal", "test", "testenv", "skips.go")
	listed := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "build" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		tests := strings.HasSuffix(path, "_test.go") || strings.Contains(path, filepath.Join("internal", "test"))
		if d.IsDir() || !tests || filepath.Ext(path) != ".go" || path == list {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(skips, s.Sel.Name) {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "testenv" {
				listed++
			} else {
				t.Errorf("%s: skips by itself; name what is missing in testenv, and call testenv.Skip", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if listed == 0 {
		t.Error("no skip was found")
	}
}
