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
	pin, digits, err := s.hold(digest)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", digest, err)
	}
	now := time.Now()
	_ = os.Chtimes(pin.Path, now, now) // a read-only store keeps its order
	s.keep(pin.file, digits)
	return pin, nil
}

// Check makes sure that an artifact has its digest. That is not a use.
func (s *Store) Check(digest string) error {
	pin, digits, err := s.hold(digest)
	if err != nil {
		return fmt.Errorf("check %s: %w", digest, err)
	}
	s.keep(pin.file, digits)
	return pin.Close()
}

func (s *Store) hold(digest string) (pin *Pin, digits string, err error) {
	if digits, err = hexOf(digest); err != nil {
		return nil, "", err
	}
	path := s.artifact(digits)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrNotFound
	}
	if err != nil {
		return nil, "", err
	}
	err = lock(f, unix.LOCK_SH)
	if err == nil && !isAt(f, path) { // evicted between opening and locking
		err = ErrNotFound
	}
	if err == nil {
		// mutant: an artifact of the cache has its digest
		err = s.demand(f, digits)
	}
	if errors.Is(err, ErrDigest) && os.Remove(path) == nil {
		err = fmt.Errorf("%w, and was removed: %w", err, ErrNotFound)
	}
	if err != nil {
		_ = f.Close()
		return nil, "", err
	}
	return &Pin{digest, path, f}, digits, nil
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
