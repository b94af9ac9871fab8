package artifacts

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt is in the chain of every error about a file that is not as Write left it: damaged, truncated or foreign.
	ErrCorrupt = errors.New("corrupt artifact")
	// ErrVersion is in the chain of an error about a format version that this package does not read.
	ErrVersion = errors.New("unknown artifact format version")
	// ErrIncompatible is in the chain of every *Mismatch.
	ErrIncompatible = errors.New("incompatible artifact")
)

// remake advises the user of a format version that is not read.
const remake = "use a newer one, or make the artifact again: medusa materialize -o FILE -- ENGINE [ARG...]"

// CorruptError names the damaged place in a file. It wraps ErrCorrupt and its cause.
type CorruptError struct {
	File    string
	Section string // "header", "sections", "manifest", "graph" or "blob"
	Offset  int64  // of the section in the file
	Err     error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("read artifact %s: %s at byte %d: %v", e.File, e.Section, e.Offset, e.Err)
}

func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
