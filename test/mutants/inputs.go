package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// inputs holds the files of the repository as they were when the run began, and the other inputs of a test's outcome.
type inputs struct {
	root  string
	files map[string]file // those that git knows or would add, by their path from the root
	tools string          // compilers, interpreters, and how verdicts are made

	lock     sync.Mutex
	closures map[string][]string
}

type file struct {
	data []byte
	mode fs.FileMode
	sum  [sha256.Size]byte
}

// readInputs reads all files, so that an edit during a run reaches neither a tree nor a key.
func readInputs(ctx context.Context, root string) (*inputs, error) {
	names, err := files(root)
	if err != nil {
		return nil, err
	}
	in := &inputs{root: root, files: map[string]file{}, closures: map[string][]string{}}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		in.files[name] = file{data, info.Mode().Perm(), sha256.Sum256(data)}
	}
	in.tools, err = in.readTools(ctx)
	return in, err
}

// readTools describes the inputs that are no files of the repository, and this program without its tables.
func (in *inputs) readTools(ctx context.Context) (string, error) {
	var b strings.Builder
	for _, c := range [][]string{{"go", "version"}, {"go", "env", "GOFLAGS", "GOAMD64"}, {"cc", "--version"}, {"python3", "--version"}} {
		out, err := command(ctx, in.root, c[0], c[1:]...).CombinedOutput()
		fmt.Fprintf(&b, "%s: %v\n%s", c, err, out)
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); slices.Contains([]string{"CC", "CFLAGS", "CI", "DEVICE"}, name) || strings.HasPrefix(name, "MEDUSA_") ||
			strings.HasPrefix(name, "SIMGPU_") || strings.HasPrefix(name, "LD_") {
			fmt.Fprintln(&b, v)
		}
	}
	for _, name := range in.names(func(name string) bool {
		return strings.HasPrefix(name, self) && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	}) {
		rows, err := onlyRows(in.files[name].data)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		if !rows {
			fmt.Fprintf(&b, "%s %x\n", name, in.files[name].sum)
		}
	}
	return b.String(), nil
}

func (in *inputs) names(wanted func(name string) bool) []string {
	var names []string
	for name := range in.files {
		if wanted(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// scope is a set of files that a row is tried in. A tree has these files and no other, so the outcome depends on no other.
type scope struct {
	in    *inputs
	files []string
	built bool // programs and libraries are made first
}

// scopes returns the sets of files that a row may be tried in. If its test passes in the first, without the mutant, the first
// counts: an edit elsewhere then leaves the verdict as it is.
func (in *inputs) scopes(ctx context.Context, m *mutant) ([]*scope, error) {
	var small []string
	switch filepath.Ext(m.Package) {
	case ".py":
		engine := strings.Join(strings.SplitAfterN(path.Clean(m.Package), "/", 3)[:2], "") // runners/vllm/, say
		small = in.names(func(name string) bool { return strings.HasPrefix(name, engine) && !document(name) })
	case ".c":
		small = in.names(func(name string) bool {
			return !slices.Contains([]string{".go", ".py"}, path.Ext(name)) && !document(name) && !apart(name)
		})
	default:
		var err error
		if small, err = in.closure(ctx, m.Package); err != nil {
			return nil, err
		}
	}
	own := path.Clean(m.Package) + "/"
	product := func(name string) bool {
		test := strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, own)
		return !test && !document(name) && !strings.HasPrefix(name, self)
	}
	return []*scope{
		{in, small, false},
		{in, in.names(func(name string) bool { return product(name) && !apart(name) }), true},
		{in, in.names(product), true},
		{in, in.names(func(string) bool { return true }), true}, // a test that reads documents, or other tests
	}, nil
}

// apart reports whether no program of this repository is built from a file: files of the plug-in for vLLM, and of docs. An edit there
// leaves the verdicts of tests of the reference engine as they are.
func apart(name string) bool {
	return strings.HasPrefix(name, "runners/vllm/") || strings.HasPrefix(name, "docs/")
}

func document(name string) bool {
	return slices.Contains([]string{".md", ".png", ".svg"}, path.Ext(name))
}

// closure returns the files in the folders of all packages that a package's tests import, and go.mod and go.sum. Tests of
// other packages are not among them. A folder without Go files belongs to the package above it.
func (in *inputs) closure(ctx context.Context, pkg string) ([]string, error) {
	in.lock.Lock()
	defer in.lock.Unlock()
	if names, ok := in.closures[pkg]; ok {
		return names, nil
	}
	list := command(ctx, in.root, "go", "list", "-deps", "-test", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", pkg)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages of %s: %w", pkg, err)
	}
	root, err := filepath.Abs(in.root)
	if err != nil {
		return nil, err
	}
	wanted, packages := map[string]bool{}, map[string]bool{}
	for line := range bytes.Lines(out) {
		dir, err := filepath.Rel(root, strings.TrimSpace(string(line)))
		if err != nil {
			return nil, err
		}
		wanted[dir] = true
	}
	for name := range in.files {
		if path.Ext(name) == ".go" {
			packages[path.Dir(name)] = true
		}
	}
	own := path.Clean(pkg)
	names := in.names(func(name string) bool {
		dir := path.Dir(name)
		for dir != "." && !packages[dir] {
			dir = path.Dir(dir)
		}
		test := strings.HasSuffix(name, "_test.go") && path.Dir(name) != own
		return name == "go.mod" || name == "go.sum" || wanted[dir] && !test && !document(name)
	})
	in.closures[pkg] = names
	return names, nil
}

// key names everything that the outcome of a row in this scope depends on.
func (s *scope) key(m *mutant) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %t\n", s.in.tools, fmt.Sprintf("%+v", *m), s.built)
	for _, name := range s.files {
		fmt.Fprintf(h, "%q %o %x\n", name, s.in.files[name].mode, s.in.files[name].sum)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}
