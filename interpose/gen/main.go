// Command gen generates code with two sides from one definition.
//
// In, in the working directory, which is the folder interpose: trace.spec (the records of a trace); beside it internal/cuda/driver.spec (the
// driver functions to hook). Out: trace/events_gen.go (the Go reader). With -c, in that folder instead: trace_gen.h (the C
// writer) and hooks_gen.h (the table of hooks). Fails: if a line is malformed; the error has its number.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"medusa/internal/specfile"
)

func main() {
	dir := flag.String("c", "", "write the C files, into this `folder`")
	flag.Parse()
	goFiles, cFiles, err := generate(".")
	switch {
	case err != nil:
	case *dir != "":
		err = specfile.Write(*dir, cFiles)
	default:
		err = specfile.Write(".", goFiles)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate returns the Go files by their paths below dir, the interpose folder, and the C files by their paths below a folder of includes.
func generate(dir string) (goFiles, cFiles map[string][]byte, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "trace.spec"))
	if err != nil {
		return nil, nil, err
	}
	s, err := parseSpec(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("parse trace.spec: %w", err)
	}
	events, err := emitGo(s)
	if err != nil {
		return nil, nil, err
	}
	procs, err := os.ReadFile(filepath.Join(dir, "..", "internal", "cuda", "driver.spec"))
	if err != nil {
		return nil, nil, err
	}
	hooks, err := emitHooks(string(procs))
	if err != nil {
		return nil, nil, err
	}
	return map[string][]byte{"trace/events_gen.go": events}, map[string][]byte{"hooks_gen.h": hooks, "trace_gen.h": emitC(s)}, nil
}
