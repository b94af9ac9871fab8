package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed errors.txt
var errorsText string

// contextLost stands for all results that an earlier launch can leave behind.
const contextLost = "CUDA_ERROR_ILLEGAL_ADDRESS"

// documented maps a function's base name to the results that it can fail with.
func documented() map[string][]string {
	table := map[string][]string{}
	for line := range strings.Lines(errorsText) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		for _, name := range fields[1:] {
			result := "CUDA_ERROR_" + name
			if name == "async" {
				result = contextLost
			}
			table[fields[0]] = append(table[fields[0]], result)
		}
	}
	return table
}

var versionSuffix = regexp.MustCompile(`(_v\d+)?(_ptsz|_ptds)?$`)

// baseName strips the ABI version and the per-thread-stream suffix from a symbol.
func baseName(symbol string) string { return versionSuffix.ReplaceAllString(symbol, "") }

// errorsOf returns the errors that a call of the exact symbol can return.
func errorsOf(table map[string][]string, symbol string) ([]string, error) {
	results := table[baseName(symbol)]
	if results == nil {
		return nil, fmt.Errorf("find errors of %s: not in errors.txt", symbol)
	}
	return results, nil
}

// losesContext reports whether only a new process helps after the result.
func losesContext(result string) bool {
	switch strings.TrimPrefix(result, "CUDA_ERROR_") {
	case "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "LAUNCH_TIMEOUT":
		return true
	}
	return false
}
