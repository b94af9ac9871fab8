package importrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Driver functions are bound in internal/cuda only, by typed functions: nowhere else does a call or a lookup name one.
const (
	cudaPackage = "medusa/internal/cuda"
	driverRoom  = "internal/cuda"
	kitRoom     = "internal/test/enginekit" // what only a stand-in for the driver exports
)

var driverSymbol = regexp.MustCompile(`^cu[A-Z]`)

func TestDriverFunctionsAreBoundInOnePlace(t *testing.T) {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("not a checkout of git: %v", err)
	}
	files := strings.Fields(string(out))
	if len(files) < 300 {
		t.Fatalf("git ls-files found %d files only", len(files))
	}
	for _, file := range files {
		if filepath.ToSlash(filepath.Dir(file)) == driverRoom {
			continue
		}
		wrong, err := lookups(filepath.Join(root, file), nil)
		if err != nil {
			t.Error(err)
		}
		for _, w := range wrong {
			if !strings.HasPrefix(file, kitRoom+"/") {
				t.Error(w)
			}
		}
	}
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

// lookups finds calls in a file that take a driver function by its name.
func lookups(file string, source any) (wrong []string, err error) {
	fset := token.NewFileSet()
	var text any
	if source != nil {
		text = source
	}
	f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(cudaPackage) }) {
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
		case "Process", "Proc":
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
