// Package spill is a temporary file for data that would take too much memory.
//
// In: bytes at offsets. Out: the same bytes. Fails: if the file system does. The file has no name, so it disappears with the
// process, however that ends. It is made at the first write.
package spill

import (
	"fmt"
	"io"
	"os"
)

// File is a file in a directory. The garbage collector closes it at the latest.
type File struct {
	Dir  string // empty: the default directory for temporary files
	file *os.File
	end  int64
}

// WriteAt writes at an offset; see io.WriterAt.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if f.file == nil {
		file, err := os.CreateTemp(f.Dir, ".medusa-spill-*")
		if err != nil {
			return 0, fmt.Errorf("create temporary file: %w", err)
		}
		if err := os.Remove(file.Name()); err != nil {
			_ = file.Close()
			return 0, fmt.Errorf("create temporary file: %w", err)
		}
		f.file = file
	}
	n, err := f.file.WriteAt(p, off)
	f.end = max(f.end, off+int64(n))
	return n, err
}

// ReadAt reads at an offset; see io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if f.file == nil {
		return 0, io.EOF
	}
	return f.file.ReadAt(p, off)
}

// End returns the offset after the last byte written.
func (f *File) End() int64 { return f.end }

// Close releases the space.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
