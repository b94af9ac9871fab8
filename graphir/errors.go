package graphir

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrCorrupt is in the chain of every error about bytes that Encode did not write.
	ErrCorrupt = errors.New("corrupt graph data")
	// ErrVersion is in the chain of an error about a newer format version.
	ErrVersion = errors.New("unknown graph format version")
)

// FormatError names the damaged place in encoded bytes. It wraps ErrCorrupt and its cause.
type FormatError struct {
	Section string // the table of the format, with its name in README.md
	Index   int    // entry of the table, or -1 for the whole table
	Err     error
}

func (e *FormatError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("decode %s: %v", e.Section, e.Err)
	}
	return fmt.Sprintf("decode %s[%d]: %v", e.Section, e.Index, e.Err)
}

func (e *FormatError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// ValidationError lists the inconsistencies in a Spec, each with its path.
type ValidationError struct {
	Problems []string // the first of them
	Total    int
}

func (e *ValidationError) Error() string {
	shown := e.Problems
	if len(shown) > 8 {
		shown = shown[:8]
	}
	text := "check graph spec: " + strings.Join(shown, "; ")
	if more := e.Total - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
