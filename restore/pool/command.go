package pool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// program is a command line of a Python interpreter.
type program struct {
	Interpreter string   // path
	Name        string   // argv[0]
	Options     []string // of the interpreter
	Argv        []string // a script, -c TEXT or -m MODULE, and the program's arguments
}

// sysArgv is sys.argv of the program.
func (p *program) sysArgv() []string {
	if p.Argv[0] == "-c" || p.Argv[0] == "-m" {
		return append([]string{p.Argv[0]}, p.Argv[2:]...)
	}
	return p.Argv
}

// place is the folder in which the interpreter looks for modules first, unless an option forbids that.
func (p *program) place(folder string) string {
	if p.Argv[0] == "-c" || p.Argv[0] == "-m" {
		return folder
	}
	path := p.Argv[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Dir(path)
}

// mostHead is the number of bytes that the kernel reads of a first line.
const mostHead = 256

// readProgram returns the program that the kernel would run for a command whose executable was found at path. A script names its
// interpreter in its first line.
func readProgram(path string, argv []string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, mostHead)
	n, _ := f.Read(head)
	head = head[:n]
	if !bytes.HasPrefix(head, []byte("#!")) {
		return splitOptions(path, argv[0], argv[1:])
	}
	line, _, whole := bytes.Cut(head[2:], []byte("\n"))
	if !whole && n == mostHead {
		return nil, fmt.Errorf("read first line of %s: it is longer than %d bytes", path, mostHead)
	}
	interpreter, option, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	name := interpreter
	option = strings.TrimSpace(option)
	rest := append([]string{path}, argv[1:]...)
	if filepath.Base(interpreter) == "env" {
		if option == "" || strings.HasPrefix(option, "-") || strings.ContainsAny(option, " =") {
			return nil, fmt.Errorf("read first line of %s: only the form `env PROGRAM` is understood", path)
		}
		if interpreter, err = exec.LookPath(option); err != nil {
			return nil, err
		}
		name, option = option, ""
	}
	if option != "" {
		rest = append([]string{option}, rest...)
	}
	return splitOptions(interpreter, name, rest)
}

// splitOptions separates the options of the interpreter from the program.
func splitOptions(interpreter, name string, args []string) (*program, error) {
	p := &program{Interpreter: filepath.Clean(interpreter), Name: name}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-c" || a == "-m":
			if i+1 == len(args) {
				return nil, fmt.Errorf("read command line: %s needs an argument", a)
			}
			p.Argv = args[i:]
			return p, nil
		case a == "-W" || a == "-X" || a == "--check-hash-based-pycs":
			if i+1 == len(args) {
				return nil, fmt.Errorf("read command line: %s needs an argument", a)
			}
			p.Options = append(p.Options, a, args[i+1])
			i++
		case a == "-" || strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "-W") && !strings.HasPrefix(a, "-X") && strings.ContainsAny(a, "cmiWX"):
			return nil, fmt.Errorf("read command line: the pool does not run Python with %s", a)
		case strings.HasPrefix(a, "-"):
			p.Options = append(p.Options, a)
		default:
			p.Argv = args[i:]
			return p, nil
		}
	}
	return nil, errors.New("read command line: there is no program")
}

func packed(texts []string) [][]byte {
	out := make([][]byte, 0, len(texts))
	for _, t := range texts {
		out = append(out, []byte(t))
	}
	return out
}

func unpacked(texts [][]byte) []string {
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		out = append(out, string(t))
	}
	return out
}

// shadowed returns a module that a program would import from its own folder, although the process has imported it from
// elsewhere.
func shadowed(place string, names []string) string {
	entries, err := os.ReadDir(place)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		name, rest, dotted := strings.Cut(e.Name(), ".")
		if !slices.Contains(names, name) {
			continue
		}
		if dotted && (rest == "py" || rest == "pyc" || strings.HasSuffix(rest, "so")) {
			return name
		}
		if _, err := os.Stat(filepath.Join(place, name, "__init__.py")); !dotted && err == nil {
			return name
		}
	}
	return ""
}
