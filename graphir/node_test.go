package graphir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every constant of type NodeType has a row in the table, with a name of its own.
func TestEveryNodeTypeHasARow(t *testing.T) {
	files, err := filepath.Glob("node*.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				if of, ok := v.Type.(*ast.Ident); ok && of.Name == "NodeType" {
					declared = append(declared, v.Names[0].Name)
				}
			}
			return true
		})
	}
	names := map[string]bool{}
	for i := range nodeTypes {
		if row := &nodeTypes[i]; row.name != "" {
			names[row.name] = true
			if (row.has == nil) != (row.lay == nil) {
				t.Errorf("type %d (%s): parameters that are checked and not made, or the reverse", i, row.name)
			}
		}
	}
	if len(declared) == 0 || len(declared) != len(names) {
		t.Errorf("%d types (%s), %d rows", len(declared), strings.Join(declared, " "), len(names))
	}
	for i, column := range valueTable {
		if column.name == "" || column.make == nil {
			t.Errorf("column %d of values has no row", i)
		}
	}
}
