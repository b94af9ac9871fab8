package graphir

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrCorrupt is in the chain of every error about bytes that no Encode wrote.
	ErrCorrupt = errors.New("corrupt graph data")
	// ErrVersion is in the chain of an error about a newer format version.
	ErrVersion = errors.New("unknown graph format version")
)

// FormatError says where encoded bytes are damaged. It wraps ErrCorrupt and its cause.
type FormatError struct {
	Section string // the table of the format, as README.md names it
	Index   int    // entry of the table, -1 where the whole table is meant
	Err     error
}

func (e *FormatError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("decode %s: %v", e.Section, e.Err)
	}
	return fmt.Sprintf("decode %s[%d]: %v", e.Section, e.Index, e.Err)
}

func (e *FormatError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// ValidationError lists what is inconsistent in a Spec, each problem with its path.
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
