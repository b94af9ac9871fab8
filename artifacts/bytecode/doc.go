// Package bytecode compiles the Python sources of an image ahead of its start. If the packages of an image were installed without
// __pycache__, each container compiles them anew.
//
// In: the layers of an image, as tar archives, and an interpreter of the version that the image's packages are for. Out: one more layer, as
// a tar archive, with the bytecode that is missing or is not of its source. The image's Python compares each file with the hash of its source
// (PEP 552), and compiles a source again if that changes later. Times do not tell: a reproducible image gives all files the same. Fails: for an archive
// that is damaged or larger than the bounds, with the disk's errors, and for an interpreter that does not run or whose version no package
// is for. A source that does not compile has no bytecode, as in the image itself.
package bytecode

import (
	"errors"
	"fmt"
)

// Bounds on the files that this process writes for an image.
const (
	maxFile  = 64 << 20
	maxTotal = 8 << 30
	maxFiles = 1_000_000
)

// Counts has the numbers of sources and of compiled files.
type Counts struct {
	Sources  int // of the interpreter's version
	Compiled int // of these, those whose bytecode is in the layer
}

var errTooLarge = errors.New("its Python files are too many or too large")

// VersionError means that the image has no packages for the interpreter.
type VersionError struct {
	Interpreter string   // 3.12
	Image       []string // versions of the image's packages
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("the interpreter is Python %s, and the image has packages for %v (name an interpreter of this version)", e.Interpreter, e.Image)
}
