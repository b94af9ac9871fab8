// Package bundled packs directories into artifacts and unpacks them before an engine starts. It bundles the caches of JIT
// compilers, which an engine on a new worker would otherwise have to fill again.
//
// In: a directory, or a bundled directory of an artifact and its target place. Out: a deterministic compressed archive (README.md), or the
// directory in place. If the place did not exist, it appears complete, in one step. Otherwise each file appears in one step, and no
// existing file changes. Fails: for a directory with devices, pipes or sockets; for an archive that is damaged, leads out of its place or
// is larger than declared (ErrArchive); and with the disk's errors.
package bundled

import "errors"

// ErrArchive is in the chain of every error about an archive that Pack did not write.
var ErrArchive = errors.New("unsafe or damaged archive")

// Bounds on unpacking, independent of an archive's declarations.
const (
	maxSize  = 64 << 30 // bytes of all files
	maxFiles = 1 << 20  // entries

	entryRoom = 4096    // bytes of disk for an entry, in addition to those of its file
	maxName   = 1024    // bytes of a path inside the archive
	maxDepth  = 32      // path elements
	maxWindow = 8 << 20 // memory of the decompressor
)

// own is the prefix of this package's own files in a place. They are not packed.
const own = ".medusa-"
