package importrules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A skipped test checks no promise, so each skip goes through testenv.Skip, which has the list of tests that may be skipped.
func TestSkipsAreListed(t *testing.T) {
	skips := []string{"Skip", "Skipf", "SkipNow"}
	list := filepath.Join(root, "test", "testenv", "skips.go")
	listed := 0
	eachGoFile(t, func(path, folder string) error {
		tests := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(folder, "test")
		if !tests || path == list {
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
	if listed == 0 {
		t.Error("no skip was found")
	}
}
