package contract

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"medusa/test/testenv"
)

var root = filepath.Join("..", "..")

// owned lists the files that may spell names out: the spec and the files generated from it.
var owned = []string{
	"internal/contract/contract.spec",
	"internal/contract/contract_gen.go",
	"interpose/preload/medusa.h",
	"cmd/libmedusa/libmedusa.h",
	"runners/torch/python/medusa_graphs/contract.py",
	"runners/vllm/medusa_vllm/contract.py",
}

// The folders and files of tests. They may spell names out, as a user would.
var tests = regexp.MustCompile(`_test\.go$|^test/|/test/|/testdata/`)

var name = regexp.MustCompile(`\bMEDUSA_[A-Z0-9]+(?:_[A-Z0-9]+)*`)

// sources lists the repository's files in the languages of the product.
func sources(t *testing.T, patterns ...string) []string {
	t.Helper()
	list := exec.Command("git", append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, patterns...)...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		testenv.Skip(t, testenv.Git)
	}
	var files []string
	for _, file := range strings.Fields(string(out)) {
		if _, err := os.Stat(filepath.Join(root, file)); err == nil { // skip files that are being removed
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no file is like %v", patterns)
	}
	return files
}

// Generators write C code, and its include guards and macros have the prefix too.
var generators = regexp.MustCompile(`/gen/`)

// The product takes names of variables from the contract. A name inside a string is spelled out by hand. Comments may mention
// variables, and the C compiler checks C identifiers with the prefix (enums, include guards, macros).
func TestNamesAreTakenFromTheContract(t *testing.T) {
	for _, file := range sources(t, "*.go", "*.py", "*.c", "*.h") {
		if slices.Contains(owned, file) || tests.MatchString(file) || generators.MatchString(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range writtenOut(file, text) {
			t.Errorf("%s: use the constant of internal/contract", found)
		}
	}
}

// Every name that pages, comments, tests and scripts mention exists in the contract.
func TestNamesThatAreSpokenOfExist(t *testing.T) {
	known := map[string]bool{
		"MEDUSA_BUILD":        true, // of tests in Python: where the libraries are
		"MEDUSA_BENCH_TRACES": true, // of a benchmark: recorded traces
	}
	spec, err := os.ReadFile("contract.spec")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range regexp.MustCompile(`(?m)^var (\w+)`).FindAllStringSubmatch(string(spec), -1) {
		known[n[1]] = true
	}
	for _, file := range sources(t, "*.c", "*.h") { // identifiers that the C compiler checks
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range name.FindAllString(inC.ReplaceAllString(string(text), ""), -1) {
			known[n] = true
		}
	}
	self := "internal/contract/names_test.go"
	for _, file := range sources(t, "*.go", "*.py", "*.c", "*.h", "*.md", "*.mk", "*.txtar", "*.yaml", "scripts/*") {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range name.FindAllString(string(text), -1) {
			if !known[n] && file != self && !generators.MatchString(file) {
				t.Errorf("%s mentions %s, which does not exist", file, n)
			}
		}
	}
}

func TestWrittenOut(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       int
	}{
		{"a.go", "package a\n// MEDUSA_RUN\nvar x = \"MEDUSA_RUN=\" + `$MEDUSA_LIB`\n", 2},
		{"a.go", "package a\nvar x = \"set MEDUSA_NEW\"\n", 1},
		{"a.c", "/* \"MEDUSA_RUN\" */\n#define MEDUSA_A 1\nint a = MEDUSA_KV; char *b = getenv(\"MEDUSA_RUN\");\n", 1},
		{"a.py", "\"\"\"Of MEDUSA_RUN.\"\"\"\n# MEDUSA_RUN\nx = os.environ['MEDUSA_RUN']\ny = f\"{a} MEDUSA_LIB\"\n", 2},
	} {
		if got := writtenOut(c.file, []byte(c.text)); len(got) != c.want {
			t.Errorf("%q: %q, want %d", c.text, got, c.want)
		}
	}
}

// writtenOut returns the places in a source file at which a string contains a variable's name.
func writtenOut(file string, text []byte) (found []string) {
	for _, s := range stringsOf(file, text) {
		for _, n := range name.FindAllString(s.text, -1) {
			found = append(found, fmt.Sprintf("%s:%d: %s", file, s.line, n))
		}
	}
	return found
}

type literal struct {
	line int
	text string
}

// Comments and strings of C and Python, whichever begins first. A Python string that is a statement by itself is a comment.
var (
	inC      = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"`)
	inPython = regexp.MustCompile(`(?s)#[^\n]*|""".*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)
)

func stringsOf(file string, text []byte) (all []literal) {
	pattern := inC
	switch filepath.Ext(file) {
	case ".go":
		var s scanner.Scanner
		files := token.NewFileSet()
		f := files.AddFile(file, -1, len(text))
		s.Init(f, text, nil, 0)
		for {
			at, kind, value := s.Scan()
			if kind == token.EOF {
				return all
			}
			if kind == token.STRING {
				all = append(all, literal{f.Line(at), value})
			}
		}
	case ".py":
		pattern = inPython
	}
	for _, at := range pattern.FindAllIndex(text, -1) {
		value := string(text[at[0]:at[1]])
		if !strings.HasPrefix(value, `"""`) && (value[0] == '"' || value[0] == '\'') {
			all = append(all, literal{1 + strings.Count(string(text[:at[0]]), "\n"), value})
		}
	}
	return all
}
