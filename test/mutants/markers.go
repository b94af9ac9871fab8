package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// marker is a one-line comment "mutant: name", directly before a statement or at the end of its first line.
type marker struct {
	name     string
	path     string // from the root of the tree
	start    int    // of the comment
	end      int    // of its line
	trailing bool   // code stands before it on its line
}

var markerLine = regexp.MustCompile(`(?m)^(.*?)(//|#|/\*) mutant: (.+?)(?: \*/)?(?: *\\)?$`)

// self holds no markers: its tests are full of things that look like one.
const self = "test/mutants/"

// findMarkers returns the markers of the tree by their names.
func findMarkers(root string) (map[string]marker, error) {
	names, err := files(root)
	if err != nil {
		return nil, err
	}
	found := map[string]marker{}
	var twice error
	for _, path := range names {
		if language(path) == nil || strings.HasPrefix(path, self) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, path))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return nil, err
		}
		for _, m := range scan(path, source) {
			if other, ok := found[m.name]; ok {
				twice = errors.Join(twice, fmt.Errorf("marker %q stands in %s and in %s", m.name, other.path, path))
			}
			found[m.name] = m
		}
	}
	return found, twice
}

// scan returns the markers of one file.
func scan(path string, source []byte) []marker {
	var found []marker
	for _, at := range markerLine.FindAllSubmatchIndex(source, -1) {
		code := bytes.TrimSpace(source[at[2]:at[3]])
		found = append(found, marker{string(source[at[6]:at[7]]), path, at[4], at[1], len(code) > 0})
	}
	return found
}

// files lists the files that git knows or would add.
func files(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return strings.Split(strings.TrimRight(string(list), "\x00"), "\x00"), nil
}

// language returns the function that finds the statement of a marker in a file of this name, nil if it can hold none.
func language(path string) func(source []byte, m marker) (*statement, error) {
	switch filepath.Ext(path) {
	case ".go":
		return goStatement
	case ".c", ".h":
		return cStatement
	case ".py":
		return pythonStatement
	}
	return nil
}
