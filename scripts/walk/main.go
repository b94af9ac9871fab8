// Command walk counts the moves of a reader who follows one run through code: from a function to each function that it calls or names,
// in the order of the text. Each function is read once, at its first use.
//
//	go run ./scripts/walk [-C folder] [-v] FUNCTION PACKAGE...
//
// In: the packages to follow, and the first function, as PACKAGE.NAME. Out: the number of moves of each kind:
//
//	down  further down in the same file
//	on    to another file: a new one, or below everything that was read of it
//	back  above something that was read before, in the same file or in another one
//	up    to a package that imports the one that is left
//
// So code without moves back reads every file from its top to its end, if it is followed from caller to callee. A function in a table
// is read at the place that uses the table. Fails: packages that do not build.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	dir := flag.String("C", ".", "folder of the module")
	list := flag.Bool("v", false, "print each move")
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	w, err := load(*dir, flag.Args()[1:])
	if err == nil {
		err = w.follow(flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
	if *list {
		for _, m := range w.moves {
			fmt.Println(m)
		}
	}
	fmt.Printf("walk: %s: %d functions and tables in %d files: down %d on %d back %d up %d\n", flag.Arg(0), len(w.read), len(w.lowest),
		w.count[down], w.count[on], w.count[back], w.count[up])
}

const (
	down = "down"
	on   = "on"
	back = "back"
	up   = "up"
)

// walk is the state of the reader.
type walk struct {
	files   *token.FileSet
	decls   map[types.Object]*decl
	imports map[string]map[string]bool // by package: those that it imports, directly or not
	read    map[types.Object]bool
	lowest  map[string]int        // by file: the lowest line at which reading began
	used    map[*types.Var]bool   // fields
	held    map[*types.Var][]held // functions in fields that have not been used
	moves   []string
	count   map[string]int
}

// held is the value of a field, in a declaration.
type held struct {
	in    *decl
	value ast.Node
}

// decl is a function, or a table: a variable of a package.
type decl struct {
	name  string
	pos   token.Pos
	pkg   string
	uses  map[*ast.Ident]types.Object
	texts []ast.Node // the parts to read: the body; a variable's value, and functions init that assign it
}

// load reads the packages with their types.
func load(dir string, paths []string) (*walk, error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,DepOnly,Deps"}, paths...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles, Deps           []string
		DepOnly                 bool
	}
	var all []listed
	export := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		export[p.ImportPath] = p.Export
		all = append(all, p)
	}
	w := &walk{files: token.NewFileSet(), decls: map[types.Object]*decl{}, imports: map[string]map[string]bool{}, read: map[types.Object]bool{},
		lowest: map[string]int{}, used: map[*types.Var]bool{}, held: map[*types.Var][]held{}, count: map[string]int{}}
	parsed := &checked{types: map[string]*types.Package{}}
	parsed.others = importer.ForCompiler(w.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	for _, p := range all { // a package comes after its imports
		if p.DepOnly {
			continue
		}
		w.imports[p.ImportPath] = map[string]bool{}
		for _, d := range p.Deps {
			w.imports[p.ImportPath][d] = true
		}
		if err := w.declare(parsed, p.ImportPath, p.Dir, p.GoFiles); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// checked imports the followed packages as they were read, so that an object is the same in each of them.
type checked struct {
	types  map[string]*types.Package
	others types.Importer
}

func (c *checked) Import(path string) (*types.Package, error) {
	if p := c.types[path]; p != nil {
		return p, nil
	}
	return c.others.Import(path)
}

// declare records the functions and the tables of a package.
func (w *walk) declare(parsed *checked, path, dir string, names []string) error {
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(w.files, filepath.Join(dir, name), nil, 0)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: parsed}).Check(path, w.files, files, info)
	if err != nil {
		return err
	}
	parsed.types[path] = pkg
	add := func(name *ast.Ident, text ast.Node) {
		w.decls[info.Defs[name]] = &decl{name: name.Name, pos: name.Pos(), pkg: path, uses: info.Uses, texts: []ast.Node{text}}
	}
	var inits []*ast.FuncDecl
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "init" && d.Recv == nil {
					inits = append(inits, d)
				} else if d.Body != nil {
					add(d.Name, d.Body)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						for _, name := range v.Names {
							if name.Name != "_" {
								add(name, v)
							}
						}
					}
				}
			}
		}
	}
	for _, d := range inits {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok {
				for _, to := range a.Lhs {
					if index, ok := to.(*ast.IndexExpr); ok {
						to = index.X
					}
					if name, ok := to.(*ast.Ident); ok && w.decls[info.Uses[name]] != nil {
						w.decls[info.Uses[name]].texts = append(w.decls[info.Uses[name]].texts, a)
					}
				}
			}
			return true
		})
	}
	return nil
}

// follow reads from the function first on.
func (w *walk) follow(first string) error {
	for obj, d := range w.decls {
		if f, ok := obj.(*types.Func); ok && f.Signature().Recv() == nil && d.pkg+"."+d.name == first {
			at := w.files.Position(d.pos)
			w.lowest[at.Filename] = at.Line
			w.enter(obj, d)
			return nil
		}
	}
	return fmt.Errorf("find %s: no such function in the packages", first)
}

// enter reads a declaration.
func (w *walk) enter(obj types.Object, d *decl) {
	w.read[obj] = true
	for _, text := range d.texts {
		w.text(d, text)
	}
}

// text reads a part of a declaration. If a field of a table holds a function, the function is read when the field is first used.
func (w *walk) text(d *decl, text ast.Node) {
	later := func(field ast.Expr, value ast.Node) bool {
		name, ok := field.(*ast.Ident)
		if !ok {
			return false
		}
		v, ok := d.uses[name].(*types.Var)
		if !ok || !v.IsField() || w.used[v.Origin()] {
			return false
		}
		if isFunc(v) {
			w.held[v.Origin()] = append(w.held[v.Origin()], held{d, value})
		}
		return isFunc(v)
	}
	ast.Inspect(text, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			return !later(n.Key, n.Value)
		case *ast.AssignStmt:
			to, ok := n.Lhs[0].(*ast.SelectorExpr)
			return !ok || !later(to.Sel, n.Rhs[0])
		case *ast.BinaryExpr: // a field is compared with nil, not used
			nothing, ok := n.Y.(*ast.Ident)
			return !ok || nothing.Name != "nil"
		case *ast.Ident:
			w.name(d, n)
		}
		return true
	})
}

func isFunc(v *types.Var) bool {
	_, is := v.Type().Underlying().(*types.Signature)
	return is
}

// name reads the declaration of a name.
func (w *walk) name(d *decl, id *ast.Ident) {
	to := d.uses[id]
	switch o := to.(type) {
	case *types.Func:
		to = o.Origin()
	case *types.Var:
		if o.IsField() && !w.used[o.Origin()] {
			w.used[o.Origin()] = true
			for _, h := range w.held[o.Origin()] {
				w.text(h.in, h.value)
			}
		}
	}
	if next := w.decls[to]; next != nil && !w.read[to] {
		w.move(d, id.Pos(), next)
		w.enter(to, next)
	}
}

// move counts a move.
func (w *walk) move(from *decl, at token.Pos, to *decl) {
	a, b := w.files.Position(at), w.files.Position(to.pos)
	kind := on
	switch {
	case from.pkg != to.pkg && w.imports[to.pkg][from.pkg]:
		kind = up
	case b.Line < w.lowest[b.Filename]:
		kind = back
	case a.Filename == b.Filename:
		kind = down
	}
	w.lowest[b.Filename] = max(w.lowest[b.Filename], b.Line)
	w.count[kind]++
	place := func(p token.Position) string {
		return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(p.Filename)), filepath.Base(p.Filename), p.Line)
	}
	w.moves = append(w.moves, fmt.Sprintf("%-4s %s at %s to %s at %s", kind, from.name, place(a), to.name, place(b)))
}
