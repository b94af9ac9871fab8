package importrules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// ownProgram is the guard process, which every program that runs commands is as well.
var ownProgram = filepath.Join(root, "interpose", "guard.go")

// Only programs end a process: a package that did could not be used by an engine, which has work of its own to finish.
func TestOnlyProgramsEndTheProcess(t *testing.T) {
	eachGoFile(t, func(path, folder string) error {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(folder, "test") {
			return nil
		}
		ends, err := endings(path, nil)
		for _, at := range ends {
			if !strings.HasPrefix(at, ownProgram) {
				t.Errorf("%s ends the process (return an error)", at)
			}
		}
		return err
	})
}

func TestWhatEndsAProcess(t *testing.T) {
	for source, want := range map[string]int{
		"package p\nimport \"os\"\nfunc f() { os.Exit(1) }\n":                            1,
		"package main\nimport \"os\"\nfunc f() { os.Exit(1) }\n":                         0,
		"package p\nimport \"log\"\nfunc f() { log.Fatalf(\"x\") }\n":                    1,
		"package p\nimport \"os\"\nvar end = os.Exit\n":                                  1,
		"package p\nimport \"syscall\"\nfunc f() { syscall.Exit(1) }\n":                  1,
		"package p\ntype t struct{}\nfunc (t) Exit(int) {}\nfunc f(os t) { os.Exit(1) }": 0,
	} {
		if ends, err := endings("p.go", source); err != nil || len(ends) != want {
			t.Errorf("%q: %q, %v", source, ends, err)
		}
	}
}

// endings lists the places of a package's file that name a function which ends the process.
func endings(file string, source any) (places []string, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil || f.Name.Name == "main" {
		return nil, err
	}
	imported := map[string]bool{}
	for _, i := range f.Imports {
		imported[strings.Trim(i.Path.Value, `"`)] = true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && imported[x.Name] &&
			((x.Name == "os" || x.Name == "syscall") && s.Sel.Name == "Exit" || x.Name == "log" && strings.HasPrefix(s.Sel.Name, "Fatal")) {
			places = append(places, fset.Position(s.Pos()).String())
		}
		return true
	})
	return places, nil
}
