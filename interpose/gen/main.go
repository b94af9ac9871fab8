// Command gen generates code with two sides from one definition.
//
// In: interpose/trace.spec (the records of a trace) and internal/cuda/driver.spec (the driver functions to hook). Out:
// interpose/preload/trace_gen.h (the C writer), interpose/trace/events_gen.go (the Go reader and writer) and
// interpose/preload/hooks_gen.h (the table of hooks). Fails: if a line is malformed; the error has its number.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	files, err := generate(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the contents of every generated file by its path below dir, the interpose folder.
func generate(dir string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, "trace.spec"))
	if err != nil {
		return nil, err
	}
	s, err := parseSpec(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse trace.spec: %w", err)
	}
	events, err := emitGo(s)
	if err != nil {
		return nil, err
	}
	procs, err := os.ReadFile(filepath.Join(dir, "..", "internal", "cuda", "driver.spec"))
	if err != nil {
		return nil, err
	}
	hooks, err := emitHooks(string(procs))
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"preload/hooks_gen.h": hooks,
		"preload/trace_gen.h": emitC(s),
		"trace/events_gen.go": events,
	}, nil
}
