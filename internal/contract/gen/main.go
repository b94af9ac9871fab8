// Command gen writes every side of the contract between the processes of a start.
//
// In: contract.spec in the working directory, which is internal/contract, and the files with a generated part: the C headers and
// docs/architecture.md. Out: those files with their parts renewed, and whole files in Go and Python. With -c, in that folder instead:
// contract_gen.c, by which the C compiler checks the headers. Fails: if a row is malformed (the error names its line), or if a header
// has no place for a struct. It writes no file then.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"medusa/internal/specfile"
)

func main() {
	dir := flag.String("c", "", "write the C file, into this `folder`")
	flag.Parse()
	root := filepath.Join("..", "..")
	files, assertions, err := generate(root)
	switch {
	case err != nil:
	case *dir != "":
		err = specfile.Write(*dir, map[string][]byte{"contract_gen.c": assertions})
	default:
		err = specfile.Write(root, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

const specName = "internal/contract/contract.spec"

// generate returns the contents of every committed file that depends on the spec, by its path below root, and contract_gen.c.
func generate(root string) (files map[string][]byte, assertions []byte, err error) {
	text, err := os.ReadFile(filepath.Join(root, specName))
	if err != nil {
		return nil, nil, err
	}
	s, err := parse(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("parse %s: %w", specName, err)
	}
	files = map[string][]byte{
		"runners/torch/python/medusa_graphs/contract.py": emitPython(s, true),
		"runners/vllm/medusa_vllm/contract.py":           emitPython(s, false),
	}
	if files["internal/contract/contract_gen.go"], err = emitGo(s); err != nil {
		return nil, nil, err
	}
	for _, header := range s.headers {
		if files[header], err = renew(root, header, s.intoHeader); err != nil {
			return nil, nil, err
		}
	}
	if files[page], err = renew(root, page, s.intoPage); err != nil {
		return nil, nil, err
	}
	return files, emitAssertions(s), nil
}

// renew returns a file with its generated parts made anew from the spec.
func renew(root, name string, change func(name, text string) (string, error)) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	out, err := change(name, string(text))
	if err != nil {
		return nil, fmt.Errorf("renew %s: %w", name, err)
	}
	return []byte(out), nil
}
