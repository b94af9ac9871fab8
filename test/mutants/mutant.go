package main

import (
	"fmt"
	"slices"
)

// mutant switches one mechanism off, by the change of the statement that its marker stands before. Test is the go test that
// has to fail for it: a package and a -run pattern, a file of Python's unittest and Class.test_name, or a file of the interpreter's tests
// and its function.
type mutant struct {
	Marker        string
	Change        change
	Package, Test string
}

// all has the rows of all tables.
func all() []mutant {
	return slices.Concat(table, nodes, large, shipping, attack, skeptic, plugins, torchPlugin, ranks, interpreter, serving, pooled)
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s: %s, by %s %s", m.Marker, m.Change, m.Package, m.Test)
}

// mutate returns the source with the mutant's change made.
func (m *mutant) mutate(source []byte, at marker) ([]byte, error) {
	s, err := language(at.path)(source, at)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", at.path, err)
	}
	changed, err := m.Change.apply(source, s)
	if err != nil {
		return nil, fmt.Errorf("change %s: %w", at.path, err)
	}
	return changed, nil
}
