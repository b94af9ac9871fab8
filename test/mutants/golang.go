package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
)

var goSyntax = syntax{never: "false && (%s)", always: "true || (%s)", negate: "!(%s)", skip: "if false {\n%s\n}"}

// goStatement finds the first node that begins after the marker, or on its line if code stands before it. Nodes that a
// marker can stand before are statements, clauses, declarations, and lines of a composite literal.
func goStatement(source []byte, m marker) (*statement, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, m.path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	file := set.File(tree.FileStart)
	line := file.Line(file.Pos(m.start))
	var found ast.Node
	tagged := map[ast.Node]bool{} // clauses of a switch over a value
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SwitchStmt); ok && s.Tag != nil {
			for _, clause := range s.Body.List {
				tagged[clause] = true
			}
		}
		if !anchors(n) {
			return true
		}
		right := file.Offset(n.Pos()) > m.start
		if m.trailing {
			right = file.Line(n.Pos()) == line
		}
		if right && (found == nil || n.Pos() < found.Pos()) {
			found = n
		}
		return true
	})
	if found == nil {
		return nil, errors.New("no statement follows the marker")
	}
	at := func(from, to token.Pos) span { return span{file.Offset(from), file.Offset(to)} }
	s := &statement{syntax: goSyntax, whole: at(found.Pos(), found.End()), head: at(found.Pos(), found.End())}
	if begin := body(found); begin.IsValid() {
		s.head = at(found.Pos(), begin)
	}
	if c := condition(found); c != nil && !tagged[found] {
		s.condition = at(c.Pos(), c.End())
	}
	return s, nil
}

// anchors reports whether a marker can stand before such a node.
func anchors(n ast.Node) bool {
	switch n.(type) {
	case *ast.BlockStmt, *ast.EmptyStmt:
		return false
	case ast.Stmt, ast.Decl, ast.Spec, *ast.KeyValueExpr:
		return true
	}
	return false
}

// body returns the begin of a statement's body.
func body(n ast.Node) token.Pos {
	switch n := n.(type) {
	case *ast.IfStmt:
		return n.Body.Lbrace
	case *ast.ForStmt:
		return n.Body.Lbrace
	case *ast.RangeStmt:
		return n.Body.Lbrace
	case *ast.SwitchStmt:
		return n.Body.Lbrace
	case *ast.TypeSwitchStmt:
		return n.Body.Lbrace
	case *ast.CaseClause:
		return n.Colon
	}
	return token.NoPos
}

// condition returns the condition of a statement, nil if it has none.
func condition(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.IfStmt:
		return n.Cond
	case *ast.ForStmt:
		return n.Cond
	case *ast.CaseClause:
		if len(n.List) == 1 {
			return n.List[0]
		}
	case *ast.ReturnStmt: // of a function that answers yes or no
		if len(n.Results) == 1 {
			return n.Results[0]
		}
	}
	return nil
}
