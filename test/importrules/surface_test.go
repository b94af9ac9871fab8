package importrules

import (
	"encoding/json"
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
	"slices"
	"strings"
	"testing"
)

// surfaces are the packages whose exported names are all used by another package's code. Tests do not count.
var surfaces = []string{"medusa/restore", "medusa/restore/rebuild", "medusa/restore/check", "medusa/restore/memory", "medusa/restore/live",
	"medusa/serving/schedule", "medusa/serving/simulate"}

// forEngines are names of package restore for engines in Go outside of this repository (docs/engines.md).
var forEngines = []string{"medusa/restore.Fallback.Code", "medusa/restore.Fallback.Reason", "medusa/restore.InvalidError.Graph",
	"medusa/restore.InvalidError.Cause"}

func TestExportedNamesAreUsed(t *testing.T) {
	m, err := loadModule()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range surfaces {
		for _, name := range m.unused(path) {
			if !slices.Contains(forEngines, name) {
				t.Errorf("%s is exported, and no other package uses it", name)
			}
		}
	}
}

// library needs cgo, which go list is told to do without, so that it compiles no C code.
var library = described{ImportPath: "medusa/cmd/libmedusa", Dir: filepath.Join(root, "cmd", "libmedusa"), GoFiles: []string{"main.go"}}

// described is a package as go list describes it.
type described struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
}

// module is the type information of all packages of this module, without tests.
type module struct {
	fset     *token.FileSet
	importer types.Importer
	used     map[types.Object]bool
	methods  map[string]bool // names that some interface has
}

func loadModule() (*module, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Standard", "./...")
	list.Dir, list.Stderr, list.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	all := map[string]*described{}
	own := []*described{&library}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p described
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = &p
		if strings.HasPrefix(p.ImportPath, "medusa/") {
			own = append(own, &p)
		}
	}
	m := &module{fset: token.NewFileSet(), used: map[types.Object]bool{}, methods: map[string]bool{"Unwrap": true}} // package errors asks for it
	m.importer = importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	for _, p := range own {
		if err := m.read(p); err != nil {
			return nil, fmt.Errorf("check %s: %w", p.ImportPath, err)
		}
	}
	return m, nil
}

// read notes the names that a package uses of others. The package's own objects are not those that an import of it yields.
func (m *module) read(p *described) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(m.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: m.importer, FakeImportC: true}
	if _, err := config.Check(p.ImportPath, m.fset, files, info); err != nil {
		return err
	}
	for _, o := range info.Uses {
		m.used[origin(o)] = true
	}
	for _, tv := range info.Types {
		if i, ok := tv.Type.Underlying().(*types.Interface); ok {
			for k := range i.NumMethods() {
				m.methods[i.Method(k).Name()] = true
			}
		}
	}
	return nil
}

func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// unused lists the exported names of a package that no other one uses. A type is used by a name in whose declaration it stands.
func (m *module) unused(path string) (names []string) {
	pkg, err := m.importer.Import(path)
	if err != nil {
		return []string{err.Error()}
	}
	scope := pkg.Scope()
	reached := map[types.Object]bool{}
	var reach func(t types.Type)
	reach = func(t types.Type) {
		switch t := t.(type) {
		case *types.Named:
			if o := t.Obj(); o.Pkg() == pkg && !reached[o] {
				reached[o] = true
				m.members(t, func(member types.Object, _ string) { reach(member.Type()) })
				reach(t.Underlying())
			}
		case *types.Alias:
			reached[t.Obj()] = true
			reach(types.Unalias(t))
		case *types.Pointer:
			reach(t.Elem())
		case *types.Slice:
			reach(t.Elem())
		case *types.Array:
			reach(t.Elem())
		case *types.Chan:
			reach(t.Elem())
		case *types.Map:
			reach(t.Key())
			reach(t.Elem())
		case *types.Signature:
			for v := range t.Params().Variables() {
				reach(v.Type())
			}
			for v := range t.Results().Variables() {
				reach(v.Type())
			}
		}
	}
	for _, name := range scope.Names() {
		if o := scope.Lookup(name); o.Exported() && m.used[o] {
			reach(o.Type())
		}
	}
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if !o.Exported() {
			continue
		}
		if !m.used[o] && !reached[o] && !enumerated(o, reached) {
			names = append(names, path+"."+name)
		}
		named, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !isType || !ok {
			continue
		}
		m.members(named, func(member types.Object, tag string) {
			if v, ok := member.(*types.Var); ok && v.Embedded() {
				return
			}
			if member.Exported() && !m.used[member] && !m.methods[member.Name()] && tag == "" {
				names = append(names, path+"."+name+"."+member.Name())
			}
		})
	}
	return names
}

// enumerated reports whether a constant is one of a type that others use: they may meet each of its values.
func enumerated(o types.Object, reached map[types.Object]bool) bool {
	_, isConst := o.(*types.Const)
	named, ok := o.Type().(*types.Named)
	return isConst && ok && reached[named.Obj()]
}

// members visits the methods and fields of a type.
func (m *module) members(t *types.Named, visit func(o types.Object, tag string)) {
	for method := range t.Methods() {
		visit(method, "")
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for i := range s.NumFields() {
			visit(s.Field(i), s.Tag(i))
		}
	}
}
