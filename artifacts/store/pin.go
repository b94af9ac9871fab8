package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Pin prevents the eviction of an artifact until it is closed or the process ends.
type Pin struct {
	Digest string
	Path   string
	file   *os.File
}

// Close permits the eviction of the artifact again.
func (p *Pin) Close() error { return p.file.Close() }

// Pin pins an artifact, which counts as a use, and checks its digest. It removes an artifact with another digest.
func (s *Store) Pin(digest string) (*Pin, error) {
	pin, digits, err := s.hold(digest)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", digest, err)
	}
	now := time.Now()
	_ = os.Chtimes(pin.Path, now, now) // fails in a read-only store, which keeps its order
	s.keep(pin.file, digits)
	return pin, nil
}

// Check checks an artifact's digest, without counting as a use.
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
