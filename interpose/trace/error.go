package trace

import (
	"errors"
	"fmt"
)

var (
	// ErrIncomplete: the trace stops before its end record. The process died, or the file was cut off.
	ErrIncomplete = errors.New("trace is incomplete")
	// errCorrupt: the bytes differ from those that the recorder wrote.
	errCorrupt = errors.New("trace is corrupt")
	// errForeign: the file is not a trace.
	errForeign = errors.New("not a trace")
	// errVersion: another version of the recorder wrote the trace, and this reader does not know it.
	errVersion = errors.New("unknown trace version")
)

// Error names the place in a trace file at which reading failed.
type Error struct {
	File    string
	Section string // "header", "chunk 3", "chunk 3, record 71 (kernel)"
	Offset  int64  // of the section in the file, in bytes
	Err     error  // wraps one of the sentinels, or an operating system error
}

func (e *Error) Error() string {
	return fmt.Sprintf("read trace %q: %s at offset %d: %v", e.File, e.Section, e.Offset, e.Err)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }
