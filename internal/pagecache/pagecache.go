// Package pagecache reads files into the operating system's page cache, so that a process that reads them later finds them there.
//
// In: files and folders. Out: the cache holds their bytes, until the kernel needs the memory. Fails: if a file cannot be opened or read, or if the files are larger
// than the memory that is available; no process depends on it.
package pagecache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// step is the number of bytes that one request to the disk asks for. It is small, because other readers wait behind it. The end of a context is seen between steps.
const step = 1 << 20

// Read reads the files, and those below the folders, in the order of their names: as loaders of checkpoints do. It returns how many bytes are in the cache.
func Read(ctx context.Context, paths []string) (int64, error) {
	files, size, err := list(paths)
	if err != nil {
		return 0, err
	}
	free, err := available()
	if err != nil {
		return 0, err
	}
	// mutant: files that do not fit
	if size > free {
		return 0, fmt.Errorf("%d MiB do not fit into %d MiB of memory that is available", size>>20, free>>20)
	}
	var read int64
	for _, name := range files {
		n, err := readFile(ctx, name)
		read += n
		if err != nil {
			return read, err
		}
	}
	return read, nil
}

// list follows links to files: a hub's cache has the names of a model's files as links.
func list(paths []string) (files []string, size int64, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := os.Stat(name)
			if err == nil && info.Mode().IsRegular() {
				files, size = append(files, name), size+info.Size()
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return files, size, nil
}

// readFile asks for each step while the disk reads the one before. It copies no data. It holds no lock of this process's memory while the disk works;
// MADV_POPULATE_READ would hold one.
func readFile(ctx context.Context, name string) (read int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	err = unix.Fadvise(int(f.Fd()), 0, step, unix.FADV_WILLNEED)
	for err == nil && read < size {
		if ctx.Err() != nil {
			return read, ctx.Err()
		}
		end := min(read+step, size)
		if err = unix.Fadvise(int(f.Fd()), end, step, unix.FADV_WILLNEED); err == nil {
			_, err = f.ReadAt(make([]byte, 1), end-1) // there once the disk has read it
		}
		if err == nil {
			read = end
		}
	}
	if err != nil {
		return read, fmt.Errorf("read %s at %d: %w", name, read, err)
	}
	return read, nil
}

// available returns how much memory the kernel can give without swapping.
func available() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kib int64
			_, err := fmt.Sscan(value, &kib)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}
