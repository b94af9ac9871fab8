// Command surface prints the sizes of packages, for people who read or import them: exported names, methods, longest file, imports.
//
//	go run ./scripts/surface [-before FOLDER] FOLDER...
//
// In: folders of this repository with packages in or below them, and a folder with an earlier state of it. Out: a table in Markdown with a
// row for each package, without tests and generated files. Exported names are functions, types, constants and variables; exported methods
// of exported types are counted apart. The type with most methods is shown with the numbers of all its methods and of the exported ones.
// Imports are those of this repository. Fails: a file that cannot be parsed.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	before := flag.String("before", "", "folder with an earlier state of the repository")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	now, err := measure(".", flag.Args())
	old := map[string]*size{}
	if err == nil && *before != "" {
		old, err = measure(*before, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "surface:", err)
		os.Exit(1)
	}
	fmt.Println("| package | exported names | exported methods | most methods of a type | longest file | imports |\n|---|---|---|---|---|---|")
	all := maps.Clone(now)
	maps.Copy(all, old)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		cell := func(of func(s *size) string) string {
			text := "–"
			if s := now[path]; s != nil {
				text = of(s)
			}
			if *before == "" {
				return text
			}
			was := "–"
			if s := old[path]; s != nil {
				was = of(s)
			}
			return was + " → " + text
		}
		fmt.Printf("| `%s` | %s | %s | %s | %s | %s |\n", path,
			cell(func(s *size) string { return fmt.Sprint(s.names) }),
			cell(func(s *size) string { return fmt.Sprint(s.methods()) }),
			cell((*size).largest),
			cell(func(s *size) string { return fmt.Sprint(s.longest) }),
			cell(func(s *size) string { return fmt.Sprint(len(s.imports)) }))
	}
}

// size has the sizes of a package.
type size struct {
	names   int
	byType  map[string][2]int // all methods, and the exported ones
	longest int               // lines of a file
	imports map[string]bool
}

func (s *size) methods() (n int) {
	for _, k := range s.byType {
		n += k[1]
	}
	return n
}

// largest is the type with most methods.
func (s *size) largest() string {
	if len(s.byType) == 0 {
		return "0"
	}
	name := slices.MaxFunc(slices.Sorted(maps.Keys(s.byType)), func(a, b string) int { return cmp.Compare(s.byType[a][0], s.byType[b][0]) })
	return fmt.Sprintf("%s %d, %d", name, s.byType[name][0], s.byType[name][1])
}

// measure reads the packages of a state of the repository by their folders.
func measure(root string, folders []string) (map[string]*size, error) {
	out := map[string]*size{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err): // the folder is missing in this state
				return nil
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if out[dir] == nil {
				out[dir] = &size{byType: map[string][2]int{}, imports: map[string]bool{}}
			}
			return out[dir].add(path)
		})
		if err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(out, func(_ string, s *size) bool { return s.longest == 0 })
	return out, nil
}

// add counts a file.
func (s *size) add(path string) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	s.longest = max(s.longest, files.File(f.Pos()).LineCount())
	for _, i := range f.Imports {
		if name := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(name, "medusa/") {
			s.imports[name] = true
		}
	}
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				s.names++
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			} else if of := receiver(d.Recv.List[0].Type); of != "" {
				n := s.byType[of]
				n[0]++
				if ast.IsExported(of) && d.Name.IsExported() {
					n[1]++
				}
				s.byType[of] = n
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					count(spec.Names...)
				}
			}
		}
	}
	return nil
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
