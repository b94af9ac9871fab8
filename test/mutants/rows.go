package main

import (
	"go/ast"
	"go/parser"
	"go/token"
)

// onlyRows reports whether a file of this program has only tables of mutants, and functions that return a mutant. An edit of such a file
// changes only the keys of its rows.
func onlyRows(source []byte) (bool, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return false, err
	}
	if len(tree.Imports) > 0 {
		return false, nil
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, s := range d.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok || len(v.Values) != 1 {
					return false, nil
				}
				table, ok := v.Values[0].(*ast.CompositeLit)
				if !ok {
					return false, nil
				}
				list, ok := table.Type.(*ast.ArrayType)
				if !ok || !named(list.Elt, "mutant") {
					return false, nil
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil || d.Type.Results == nil || len(d.Type.Results.List) != 1 || !named(d.Type.Results.List[0].Type, "mutant") {
				return false, nil
			}
		}
	}
	return true, nil
}

func named(t ast.Expr, name string) bool {
	id, ok := t.(*ast.Ident)
	return ok && id.Name == name
}
