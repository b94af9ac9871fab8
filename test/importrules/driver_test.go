package importrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Driver functions are bound in internal/cuda only, by typed functions: no call or lookup elsewhere names one.
const (
	cudaPackage = "medusa/internal/cuda"
	driverRoom  = "internal/cuda"
	kitRoom     = "test/enginekit" // opens the driver for functions that only a stand-in exports
)

var driverSymbol = regexp.MustCompile(`^cu[A-Z]`)

func TestDriverFunctionsAreBoundInOnePlace(t *testing.T) {
	eachGoFile(t, func(path, folder string) error {
		if folder == driverRoom {
			return nil
		}
		wrong, err := lookups(path, nil)
		for _, w := range wrong {
			if folder != kitRoom || !strings.Contains(w, ": Library(") {
				t.Error(w)
			}
		}
		return err
	})
}

func TestWhatTheLookupsAre(t *testing.T) {
	for _, tc := range []struct {
		imports, expression string
		wrong               bool
	}{
		{cudaPackage, `cuda.Driver("cuInit")`, true},
		{cudaPackage, `cuda.Driver(name)`, true},
		{cudaPackage, `cuda.Process("cuInit")`, true},
		{cudaPackage, `cuda.Library(path).Proc("cuInit")`, true},
		{cudaPackage, `cuda.Library("libcuda.so.1")`, true},
		{cudaPackage, `cuda.Library("libcublas.so").Proc("cublasCreate_v2")`, false},
		{"medusa/" + kitRoom, `enginekit.StandIn("cuInit")`, true},
		{"medusa/" + kitRoom, `enginekit.StandIn("simgpu_describe")`, false},
		{cudaPackage, `cuda.Process("medusa_play")`, false},
		{cudaPackage, `report("cuInit")`, false},
		{"fmt", `cuda.Driver("cuInit")`, false},
	} {
		source := fmt.Sprintf("package p\nimport %q\nvar _ = %s\n", tc.imports, tc.expression)
		if wrong, err := lookups("p.go", source); err != nil || (len(wrong) > 0) != tc.wrong {
			t.Errorf("%s importing %s: reported %q, %v", tc.expression, tc.imports, wrong, err)
		}
	}
}

// lookups finds calls in a file that take a driver function by its name, or the driver by its own.
func lookups(file string, source any) (wrong []string, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == strconv.Quote(cudaPackage) || i.Path.Value == strconv.Quote("medusa/"+kitRoom)
	}) {
		return nil, nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		var name string
		if len(call.Args) > 0 {
			if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				name, _ = strconv.Unquote(lit.Value)
			}
		}
		switch callee.Sel.Name {
		case "Driver":
			ok = true
		case "Process", "Proc", "StandIn":
			ok = driverSymbol.MatchString(name)
		case "Library":
			ok = strings.HasPrefix(filepath.Base(name), "libcuda.so")
		default:
			ok = false
		}
		if ok {
			wrong = append(wrong, fmt.Sprintf("%s: %s(%q) names a driver function outside of %s (add a row to driver.spec)",
				fset.Position(call.Pos()), callee.Sel.Name, name, driverRoom))
		}
		return true
	})
	return wrong, nil
}
