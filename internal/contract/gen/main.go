// Command gen writes every side of the contract between the processes of a start.
//
// In: internal/contract/contract.spec, and the files with a generated part: the C headers and docs/architecture.md, below the
// module's root. Out: those files with their parts renewed, and whole files in Go, C and Python. Fails: if a row is malformed
// (the error names its line), or if a header has no place for a struct. It writes no file then.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := filepath.Join("..", "..") // go generate runs in internal/contract
	files, err := generate(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

const specName = "internal/contract/contract.spec"

// generate returns the contents of every file that depends on the spec, by its path below root.
func generate(root string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, specName))
	if err != nil {
		return nil, err
	}
	s, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", specName, err)
	}
	files := map[string][]byte{
		"runners/torch/python/medusa/contract.py": emitPython(s, true),
		"runners/vllm/medusa_vllm/contract.py":    emitPython(s, false),
	}
	if files["internal/contract/contract_gen.go"], err = emitGo(s); err != nil {
		return nil, err
	}
	for _, header := range s.headers {
		if files[header], err = renew(root, header, s.intoHeader); err != nil {
			return nil, err
		}
		files[filepath.Join(filepath.Dir(header), "contract_gen.c")] = emitAssertions(s, header)
	}
	if files[page], err = renew(root, page, s.intoPage); err != nil {
		return nil, err
	}
	return files, nil
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
