package importrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mostStops bounds the way of one pointer from a trace to a node's parameters.
const mostStops = 14

// stop is a row of that way in docs/architecture.md.
type stop struct{ receiver, function, file, handsOn string }

var stopRow = regexp.MustCompile("^\\| [^|]* \\| `(\\w+)\\.(\\w+)` \\| ([\\w/.]+) \\| `(\\w+)` \\|$")

// The table names each function on the way of a pointer and the name that it hands on. That is the next function, or the data or
// the table of types between the two. Both functions name the data. A table of types is in the package of both.
func TestTheWayOfOnePointer(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- pointer: start -->")
	table, _, _ = strings.Cut(table, "<!-- end of pointer -->")
	var stops []stop
	for line := range strings.Lines(table) {
		if m := stopRow.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			stops = append(stops, stop{m[1], m[2], m[3], m[4]})
		}
	}
	if rows := strings.Count(table, "\n|") - 2; len(stops) != rows || rows == 0 || rows > mostStops {
		t.Fatalf("%d rows, %d of them stops, at most %d", rows, len(stops), mostStops)
	}
	for _, wrong := range brokenWay(stops, func(s stop) (map[string]bool, error) { return namesIn(filepath.Join(root, s.file), s) }) {
		t.Error(wrong)
	}
}

func TestWhatBreaksTheWay(t *testing.T) {
	names := map[string]map[string]bool{"a": {"b": true}, "b": {"shared": true}, "c": {"shared": true, "end": true}, "d": {}}
	read := func(s stop) (map[string]bool, error) {
		if n := names[s.function]; n != nil {
			return n, nil
		}
		return nil, fmt.Errorf("no function %s", s.function)
	}
	way := []stop{{"t", "a", "p/f.go", "b"}, {"t", "b", "p/f.go", "shared"}, {"t", "c", "q/f.go", "end"}}
	if wrong := brokenWay(way, read); wrong != nil {
		t.Errorf("a whole way: %q", wrong)
	}
	for i, bad := range [][]stop{
		{way[0], way[2]}, // a does not lead to c
		{{"t", "x", "p/f.go", "b"}, way[1], way[2]}, // no such function
		{way[0], {"t", "b", "p/f.go", "other"}, way[2]},
		{way[1], {"t", "d", "q/f.go", "end"}},
	} {
		if wrong := brokenWay(bad, read); wrong == nil {
			t.Errorf("way %d: no break found", i)
		}
	}
}

// brokenWay says where a way is broken. read returns the names that a function mentions.
func brokenWay(stops []stop, read func(stop) (map[string]bool, error)) (wrong []string) {
	for i, s := range stops {
		names, err := read(s)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		if !names[s.handsOn] {
			wrong = append(wrong, fmt.Sprintf("%s.%s does not name %s", s.receiver, s.function, s.handsOn))
		}
		if i+1 == len(stops) {
			break
		}
		next := stops[i+1]
		inTable := s.handsOn == tableOfTypes && filepath.Dir(s.file) == filepath.Dir(next.file)
		if taken, err := read(next); err == nil && s.handsOn != next.function && !taken[s.handsOn] && !inTable {
			wrong = append(wrong, fmt.Sprintf("%s.%s hands on %s, which %s.%s neither is nor names", s.receiver, s.function, s.handsOn, next.receiver, next.function))
		}
	}
	return wrong
}

// tableOfTypes is the name of a package's table of node types. The package's tests find missing rows.
const tableOfTypes = "nodeTypes"

// namesIn returns the names in the body of a method.
func namesIn(path string, s stop) (map[string]bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != s.function || f.Recv == nil || receiverOf(f) != s.receiver {
			continue
		}
		names := map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
		return names, nil
	}
	return nil, fmt.Errorf("%s has no method %s.%s", s.file, s.receiver, s.function)
}

func receiverOf(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
