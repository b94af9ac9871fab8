package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"medusa/internal/contract"
)

const (
	unpackedDir = "unpacked"
	gone        = ".gone" // suffix of a folder that is being removed
)

// Unpacked returns the folder for the unpacked directory with this digest, whether or not it exists.
func (s *Store) Unpacked(digest string) (string, error) {
	digits, err := hexOf(digest)
	return filepath.Join(s.dir, unpackedDir, digits), err
}

// Unpack pins that folder and returns it. If files are missing, Unpack makes room for size bytes, the most that they take, and
// calls fill. The engine may add files. The folder counts against the limit, like an artifact.
func (s *Store) Unpack(digest string, size int64, fill func(dir string) error) (*Pin, error) {
	path, err := s.Unpacked(digest)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if size > s.limit {
		return nil, fmt.Errorf("unpack %s: %d bytes are %w, %d bytes ("+contract.EnvCacheLimit+")", digest, size, errTooLarge, s.limit)
	}
	pin, err := s.pinFolder(path, digest)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", digest, err)
	}
	if missing := size - folderSize(path); missing > 0 {
		_, err = s.evict(s.limit-missing, false)
	}
	if err == nil {
		err = fill(pin.Path)
	}
	if err == nil {
		_, err = s.evict(s.limit, false)
	}
	if err != nil {
		_ = pin.Close()
		return nil, fmt.Errorf("unpack %s: %w", digest, err)
	}
	return pin, nil
}

// pinFolder makes the folder if it is missing, and pins it.
func (s *Store) pinFolder(path, digest string) (*Pin, error) {
	for attempt := 1; ; attempt++ {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if err == nil {
			err = lock(f, unix.LOCK_SH)
		}
		if err == nil && !isAt(f, path) { // evicted between open and lock
			err = fs.ErrNotExist
		}
		if err == nil {
			now := time.Now()
			return &Pin{digest, path, f}, os.Chtimes(path, now, now)
		}
		if f != nil {
			_ = f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) || attempt == attempts {
			return nil, err
		}
	}
}

// folders lists the unpacked bundled directories as victims.
func (s *Store) folders() (out []victim, total int64, err error) {
	found, err := os.ReadDir(filepath.Join(s.dir, unpackedDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	for _, e := range found {
		path := filepath.Join(s.dir, unpackedDir, e.Name())
		info, statErr := e.Info()
		if errors.Is(statErr, fs.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, statErr); err != nil {
			break
		}
		size := folderSize(path)
		total += size
		out = append(out, victim{path, size, info.ModTime(), strings.HasSuffix(e.Name(), gone)})
	}
	return out, total, err
}

// folderSize adds up the sizes of a folder's files. It may miss files that an engine adds or removes meanwhile.
func folderSize(path string) (size int64) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

// removeTree removes a file or a folder. It first renames a folder, so that no process mistakes a partial one for the whole.
func removeTree(path string) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() && !strings.HasSuffix(path, gone) {
		if err := os.Rename(path, path+gone); err != nil {
			return err
		}
		path += gone
	}
	return os.RemoveAll(path)
}
