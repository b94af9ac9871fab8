// Package layer packs directories into artifacts and puts them in place before an engine starts: the caches of JIT
// compilers, which an engine on a new worker would otherwise fill again.
//
// In: a directory, or a layer of an artifact and the place it is meant for. Out: a deterministic compressed archive
// (README.md), or the directory in place: all of it at once where there was none, else each file at once, and none that
// was there changed. What can fail: a directory with devices, pipes or sockets, an archive that is damaged,
// leads out of its place or is larger than it says (ErrArchive), and the disk.
package layer

import "errors"

// ErrArchive is in the chain of every error about bytes that Pack did not write.
var ErrArchive = errors.New("unsafe or damaged archive")

// Bounds of what is unpacked, however much an archive declares.
const (
	MaxSize  = 64 << 30 // bytes of all files
	MaxFiles = 1 << 20  // entries

	entryRoom = 4096    // bytes of disk that an entry takes beside those of its file
	maxName   = 1024    // bytes of a path inside the archive
	maxDepth  = 32      // its elements
	maxWindow = 8 << 20 // memory of the decompressor
)

// own starts the names of this package's own entries in a place: they are not packed.
const own = ".medusa-"
