package yamlfile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// The library's time grows with the square of the depth of a file and of the length of some lists, and with the size that aliases stand for.
const (
	maxDepth  = 100 // in tokens that begin inside of each other: files for people have some 20
	maxTokens = 50_000
	maxNodes  = 1 << 20
)

// shallow refuses text that is too long or nests too deeply, before the library parses it.
func shallow(text string) error {
	var open []int // columns of the tokens around this one, outside of brackets
	brackets := 0
	tokens := lexer.Tokenize(text)
	// mutant: tokens of a file
	if len(tokens) > maxTokens {
		return errLong
	}
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		}
		for len(open) > 0 && open[len(open)-1] >= t.Position.Column {
			open = open[:len(open)-1]
		}
		if brackets <= 0 {
			open = append(open, t.Position.Column)
		}
		// mutant: depth of a file
		if len(open)+max(brackets, 0) > maxDepth {
			return &Error{Line: max(t.Position.Line, 1), Column: max(t.Position.Column, 1), Err: errDeep}
		}
	}
	return nil
}

// expanded counts the nodes that a node stands for, aliases followed, up to maxNodes+1. An alias inside of its own anchor stands for too many.
func (e *exact) expanded(n ast.Node) int {
	if n == nil {
		return 0
	}
	if size, known := e.sizes[n]; known {
		return size
	}
	e.sizes[n] = maxNodes + 1 // as long as it is being counted
	size := 1
	add := func(n ast.Node) { size = min(size+e.expanded(n), maxNodes+1) }
	switch n := n.(type) {
	case *ast.AnchorNode:
		add(n.Value)
	case *ast.TagNode:
		add(n.Value)
	case *ast.AliasNode:
		add(e.anchors[n.Value.String()])
	case *ast.SequenceNode:
		for _, item := range n.Values {
			add(item)
		}
	case *ast.MappingNode:
		for _, value := range n.Values {
			add(value)
		}
	case *ast.MappingValueNode:
		add(n.Key)
		add(n.Value)
	}
	e.sizes[n] = size
	return size
}
