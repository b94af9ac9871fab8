// Command gen generates everything that must agree with internal/cuda/driver.spec.
//
// In: driver.spec, found below the module root (the working directory or a parent of it). Out: Go bindings and results. With -c, in that
// folder instead: the C prototypes, the simulated GPU's entry points and their table, and the results for C. Fails: if a row is
// malformed; the error names its line. It writes no file then.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"medusa/internal/specfile"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	dir := flag.String("c", "", "write the C files, into this `folder`")
	flag.Parse()
	root, err := moduleRoot()
	if err != nil {
		log.Fatal(err)
	}
	goFiles, cFiles, err := generate(root)
	if err != nil {
		log.Fatal(err)
	}
	if *dir != "" {
		err = specfile.Write(*dir, cFiles)
	} else {
		err = specfile.Write(root, goFiles)
	}
	if err != nil {
		log.Fatal(err)
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

// generate returns the Go files by their paths below root, and the C files by their paths below a folder of includes.
func generate(root string) (goFiles, cFiles map[string][]byte, err error) {
	name := filepath.Join("internal", "cuda", "driver.spec")
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, nil, err
	}
	s, err := parse(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("parse %s: %w", name, err)
	}
	goResults, err := resultsGo(s)
	if err != nil {
		return nil, nil, err
	}
	goBindings, err := bindingsGo(s)
	if err != nil {
		return nil, nil, fmt.Errorf("bind functions of %s: %w", name, err)
	}
	goFiles = map[string][]byte{
		"internal/cuda/bind_gen.go":   goBindings,
		"internal/cuda/result_gen.go": goResults,
	}
	cFiles = map[string][]byte{
		"cuda_procs_gen.h":   []byte(prototypes(s)),
		"symbols_gen.h":      []byte(symbols(s)),
		"core/procs_gen.h":   []byte(simHeader(s)),
		"core/procs_gen.c":   []byte(simSource(s)),
		"core/results_gen.h": []byte(resultsC(s)),
	}
	return goFiles, cFiles, nil
}
