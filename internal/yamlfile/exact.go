package yamlfile

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// exact refuses what the library would change without a word, or read otherwise than most people do: it cuts 1.5 to 1 if the field is whole, a
// text 0.90 becomes 0.9, 010 becomes 8, a field without a value becomes 0 or the empty list, and a merged key replaces the one beside it.
type exact struct {
	anchors map[string]ast.Node
	seen    map[visit]bool
	sizes   map[ast.Node]int
}

// visit is a node that is read as a type. Aliases may lead to it many times, or from itself.
type visit struct {
	node ast.Node
	as   reflect.Type
}

func newExact(root ast.Node) *exact {
	e := &exact{anchors: map[string]ast.Node{}, seen: map[visit]bool{}, sizes: map[ast.Node]int{}}
	ast.Walk(e, root)
	return e
}

// Visit implements [ast.Visitor]: it collects the anchors, to which aliases refer.
func (e *exact) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		e.anchors[a.Name.String()] = a.Value
	}
	return e
}

// check walks a node beside the type into which it is decoded. Nodes that do not fit the type are left to the library.
func (e *exact) check(n ast.Node, as reflect.Type) error {
	for as.Kind() == reflect.Pointer {
		as = as.Elem()
	}
	if n == nil || e.seen[visit{n, as}] {
		return nil
	}
	e.seen[visit{n, as}] = true
	switch n := n.(type) {
	case *ast.AnchorNode:
		return e.check(n.Value, as)
	case *ast.TagNode:
		return e.check(n.Value, as)
	case *ast.AliasNode:
		return e.check(e.anchors[n.Value.String()], as)
	case *ast.SequenceNode:
		if as.Kind() != reflect.Slice {
			return nil
		}
		for _, item := range n.Values {
			if err := e.value(item, as.Elem()); err != nil {
				return err
			}
		}
	case *ast.MappingNode:
		for _, value := range n.Values {
			if err := e.field(value, as); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		return e.field(n, as)
	default:
		return scalar(n, as.Kind())
	}
	return nil
}

// field checks the value of a key.
func (e *exact) field(n *ast.MappingValueNode, as reflect.Type) error {
	// mutant: merge keys
	if _, merge := n.Key.(*ast.MergeKeyNode); merge {
		return inexact(n.Key, "merge keys (<<) are not read: write the fields out")
	}
	switch as.Kind() {
	case reflect.Map:
		if err := e.check(n.Key, as.Key()); err != nil {
			return err
		}
		return e.value(n.Value, as.Elem())
	case reflect.Struct:
		for i := range as.NumField() {
			f := as.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name == n.Key.GetToken().Value {
				return e.value(n.Value, f.Type)
			}
		}
	}
	return nil
}

// value checks a node that has to hold a value.
func (e *exact) value(n ast.Node, as reflect.Type) error {
	// mutant: fields without a value
	if _, null := n.(*ast.NullNode); null {
		return inexact(n, "the field has no value (leave it out)")
	}
	return e.check(n, as)
}

// octal is a number that is read by the base 8 or by the base 10, depending on the version of YAML.
var octal = regexp.MustCompile(`^[+-]?0[0-9_]`)

func scalar(n ast.Node, kind reflect.Kind) error {
	value, text := 0.0, n.GetToken().Value
	// mutant: octal numbers
	if kind >= reflect.Int && kind <= reflect.Float64 && octal.MatchString(text) && !strings.Contains(text, ".") {
		return inexact(n, "%s begins with 0: write the number without it", text)
	}
	switch n := n.(type) {
	case *ast.IntegerNode:
		if kind == reflect.String && fmt.Sprint(n.Value) != text {
			return inexact(n, "%s would be read as %v (quote it)", text, n.Value)
		}
		return nil
	case *ast.FloatNode:
		if kind == reflect.String && fmt.Sprint(n.Value) != text {
			return inexact(n, "%s would be read as %v (quote it)", text, n.Value)
		}
		value = n.Value
	case *ast.InfinityNode:
		value = n.Value
	case *ast.StringNode:
		var err error
		if value, err = strconv.ParseFloat(n.Value, 64); err != nil {
			return nil
		}
	default:
		return nil
	}
	// mutant: whole numbers
	if kind >= reflect.Int && kind <= reflect.Uint64 && !(value == math.Trunc(value) && math.Abs(value) < 1<<53) {
		return inexact(n, "the field needs a whole number, not %s", text)
	}
	return nil
}

func inexact(n ast.Node, format string, args ...any) error {
	p := n.GetToken().Position
	return &Error{Line: max(p.Line, 1), Column: max(p.Column, 1), Err: fmt.Errorf("read YAML: "+format, args...)}
}
