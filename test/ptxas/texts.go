package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// text is PTX and the project's verdict on it.
type text struct {
	name, body string
	wrong      bool
	only       bool // for its own target only
}

// collect gathers the texts of the table, of the project's sources, and those in the folder loaded, if there is one.
func collect(root, table, loaded string) ([]text, error) {
	data, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	texts, err := cases(string(data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name() == "build" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		found, err := inFile(root, path)
		for _, t := range found {
			// A header's text is in each file that includes it.
			if !seen[t.body] {
				seen[t.body] = true
				texts = append(texts, t)
			}
		}
		return err
	})
	if err != nil || loaded == "" {
		return texts, err
	}
	files, err := filepath.Glob(filepath.Join(loaded, "*.ptx"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("read %s: no texts", loaded)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text{name: file, body: string(body), only: true})
	}
	return texts, nil
}

// inFile returns the PTX of one source file. A text that is wrong by intent says so in a comment.
func inFile(root, path string) ([]text, error) {
	if strings.HasSuffix(path, ".ptx") {
		body, err := os.ReadFile(path)
		return []text{{name: path, body: string(body)}}, err
	}
	read := map[string]func(root, path string, source []byte) ([]string, error){".c": literalsC, ".go": literalsGo}[filepath.Ext(path)]
	if read == nil || strings.Contains(path, "simgpu/test/") {
		return nil, nil
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	literals, err := read(root, path, source)
	if err != nil {
		return nil, err
	}
	var texts []text
	for _, body := range literals {
		if strings.HasPrefix(body, ".version ") && strings.Contains(body, ".target") && strings.HasSuffix(strings.TrimSpace(body), "}") {
			texts = append(texts, text{name: path, body: body, wrong: strings.Contains(body, "// wrong\n")})
		}
	}
	return texts, nil
}

var (
	literal = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"(?:\s+"(?:[^"\\\n]|\\.)*")*`)
	piece   = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
)

// literalsC returns the string literals of a C file after its macros are expanded.
func literalsC(root, path string, source []byte) ([]string, error) {
	args := []string{"-E", "-P", "-D_GNU_SOURCE", "-I" + filepath.Join(root, "internal/cuda/include"), path}
	for _, dir := range []string{"build/generated", "simgpu/standins", "interpose/preload", "interpose/test"} {
		args = append(args, "-I"+filepath.Join(root, dir))
	}
	out, err := exec.Command("gcc", args...).Output()
	switch {
	case err != nil && strings.Contains(string(source), `".version `):
		return nil, fmt.Errorf("expand %s: %w", path, err)
	case err != nil: // it needs a header that is made elsewhere
		return nil, nil
	}
	var all []string
	for _, l := range literal.FindAllString(string(out), -1) {
		var body strings.Builder
		for _, p := range piece.FindAllString(l, -1) {
			s, err := strconv.Unquote(strings.ReplaceAll(p, `\0`, `\x00`))
			if err != nil {
				s = "" // an escape that Go does not have is in no PTX
			}
			body.WriteString(s)
		}
		all = append(all, body.String())
	}
	return all, nil
}

func literalsGo(_, path string, source []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	if err != nil {
		return nil, err
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && !strings.HasSuffix(path, "_test.go") {
			if s, err := strconv.Unquote(l.Value); err == nil {
				all = append(all, s)
			}
		}
		return true
	})
	return all, nil
}

// cases returns the texts of the table. Its first lines explain the lines "==== ...".
func cases(table string) ([]text, error) {
	var texts []text
	var kernel string
	for _, part := range strings.Split("\n"+table, "\n==== ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		body += "\n"
		if head == "kernel" {
			kernel = body
			continue
		}
		fields := strings.Split(head, " | ")
		if len(fields) < 3 || fields[0] != "right" && fields[0] != "wrong" {
			return nil, fmt.Errorf("no case: %s", head)
		}
		kind := append(strings.Fields(fields[1]), "7.8", "sm_80")
		start := fmt.Sprintf(".version %s\n.target %s\n.address_size 64\n", kind[1], kind[2])
		switch kind[0] {
		case "top":
			body = start + body
		case "body":
			body = start + kernel + body + "\tret;\n}\n"
		case "module":
		default:
			return nil, fmt.Errorf("no case: %s", head)
		}
		texts = append(texts, text{name: fields[2], body: body, wrong: fields[0] == "wrong", only: fields[0] == "wrong"})
	}
	return texts, nil
}
