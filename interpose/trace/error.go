package trace

import (
	"errors"
	"fmt"
)

var (
	// ErrIncomplete: the trace stops before its end record. The process died, or the file was cut off.
	ErrIncomplete = errors.New("trace is incomplete")
	// ErrCorrupt: the bytes are not what the recorder wrote.
	ErrCorrupt = errors.New("trace is corrupt")
	// ErrForeign: the file is no trace.
	ErrForeign = errors.New("not a trace")
	// ErrVersion: the trace was written by another version of the recorder than this reader knows.
	ErrVersion = errors.New("unknown trace version")
)

// Error says where in a trace file reading failed.
type Error struct {
	File    string
	Section string // "header", "chunk 3", "chunk 3, record 71 (kernel)"
	Offset  int64  // of the section in the file, in bytes
	Err     error  // wraps one of the sentinels, or is an operating system error
}

func (e *Error) Error() string {
	return fmt.Sprintf("read trace %q: %s at offset %d: %v", e.File, e.Section, e.Offset, e.Err)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }
