package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Pin keeps an artifact from being evicted until it is closed or the process ends.
type Pin struct {
	Digest string
	Path   string
	file   *os.File
}

// Close lets the artifact be evicted.
func (p *Pin) Close() error { return p.file.Close() }

// Pin takes hold of an artifact, which counts as a use, and makes sure that it has its digest. One that has not is removed.
func (s *Store) Pin(digest string) (*Pin, error) {
	digits, err := hexOf(digest)
	if err != nil {
		return nil, err
	}
	path := s.artifact(digits)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w", digest, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", digest, err)
	}
	if err := lock(f, unix.LOCK_SH); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", digest, err)
	}
	if !isAt(f, path) { // evicted between opening and locking
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", digest, ErrNotFound)
	}
	if err := s.demand(f, digits); err != nil {
		_ = f.Close()
		if errors.Is(err, ErrDigest) && os.Remove(path) == nil {
			err = fmt.Errorf("%w, and was removed: %w", err, ErrNotFound)
		}
		return nil, fmt.Errorf("open %s: %w", digest, err)
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // a read-only store keeps its order
	s.keep(f, digits)
	return &Pin{digest, path, f}, nil
}

func lock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isAt says whether path still names the open file.
func isAt(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
