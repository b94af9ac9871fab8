// Command gen generates everything that must agree with internal/cuda/driver.spec.
//
// In: driver.spec, found below the module root (the working directory or a parent of it). Out: the C prototypes, the simulated
// GPU's entry points and their table, Go bindings, and the result names for C and for Go. Fails: if a row is malformed; the
// error names its line. It writes no file then.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	flag.Parse()
	root, err := moduleRoot()
	if err != nil {
		log.Fatal(err)
	}
	files, err := Generate(root)
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find module root: no go.mod here or above (run inside the repository)")
		}
		dir = parent
	}
}

// Generate returns the generated files by path below root.
func Generate(root string) (map[string][]byte, error) {
	name := filepath.Join("internal", "cuda", "driver.spec")
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	s, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	goResults, err := resultsGo(s)
	if err != nil {
		return nil, err
	}
	goBindings, err := bindingsGo(s)
	if err != nil {
		return nil, fmt.Errorf("bind functions of %s: %w", name, err)
	}
	return map[string][]byte{
		"internal/cuda/bind_gen.go":              goBindings,
		"internal/cuda/include/cuda_procs_gen.h": []byte(prototypes(s)),
		"internal/cuda/result_gen.go":            goResults,
		"test/calllog/proxy/symbols_gen.h":       []byte(symbols(s)),
		"simgpu/driver/core/procs_gen.h":         []byte(simHeader(s)),
		"simgpu/driver/core/procs_gen.c":         []byte(simSource(s)),
		"simgpu/driver/core/results_gen.h":       []byte(resultsC(s)),
	}, nil
}
