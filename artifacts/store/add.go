package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"medusa/artifacts"
	"medusa/internal/contract"
)

// Fill writes an artifact's bytes from offset have on, which is the end of an earlier attempt. It may be called again with 0 if
// the result is wrong.
type Fill func(ctx context.Context, f *os.File, have int64) error

// Origin keeps the origin of an artifact (SetProofs); nil means that the artifact was made here. It is called before the artifact
// can be found: a process that is killed in between must not leave an artifact that seems to be made here. It is also called if the
// store has the artifact already.
type Origin func() error

// attempts bounds how often an artifact is stored again after an immediate eviction.
const attempts = 3

// Add stores the artifact with this digest and size in bytes unless the store has it. It gives the artifact a name unless name is
// empty, and pins it. If several processes add the same artifact at once, one of them fills it and the others wait.
func (s *Store) Add(ctx context.Context, digest string, size int64, name string, origin Origin, fill Fill) (*Pin, error) {
	digits, err := hexOf(digest)
	if err != nil {
		return nil, fmt.Errorf("store artifact: %w", err)
	}
	if size > s.limit {
		return nil, fmt.Errorf("store %s: %d bytes are %w, %d bytes ("+contract.EnvCacheLimit+")", digest, size, errTooLarge, s.limit)
	}
	for attempt := 1; ; attempt++ {
		pin, err := s.Pin(digest)
		if errors.Is(err, ErrNotFound) {
			pin, err = s.add(ctx, digits, size, origin, fill)
		} else if err == nil {
			pin, err = pin.from(origin)
		}
		if errors.Is(err, ErrNotFound) && attempt < attempts {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", digest, s.hint(err, size))
		}
		if name != "" {
			if err := s.name(name, digest); err != nil {
				_ = pin.Close()
				return nil, fmt.Errorf("store %s: %w", digest, s.hint(err, size))
			}
		}
		// Other processes may have added artifacts meanwhile.
		if _, err := s.evict(s.limit, false); err != nil {
			_ = pin.Close()
			return nil, err
		}
		return pin, nil
	}
}

// AddFile stores an artifact file.
func (s *Store) AddFile(ctx context.Context, path, name string, origin func(digest string) error) (*Pin, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store artifact: %w", err)
	}
	defer in.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, in)
	if err != nil {
		return nil, fmt.Errorf("store artifact: %w", err)
	}
	digest := digestPrefix + hex.EncodeToString(sum.Sum(nil))
	var keep Origin
	if origin != nil {
		keep = func() error { return origin(digest) }
	}
	return s.Add(ctx, digest, size, name, keep, func(_ context.Context, f *os.File, have int64) error {
		_, err := io.Copy(f, io.NewSectionReader(in, have, size-have))
		return err
	})
}

func (s *Store) add(ctx context.Context, digits string, size int64, origin Origin, fill Fill) (*Pin, error) {
	path := s.partial(digits)
	f, err := s.claim(ctx, path)
	if err != nil {
		return nil, err
	}
	pinned := false
	defer func() {
		if !pinned {
			_ = f.Close()
		}
	}()
	// The process that held the lock may have finished the artifact.
	if pin, err := s.Pin(digestPrefix + digits); !errors.Is(err, ErrNotFound) {
		_ = os.Remove(path)
		if err != nil {
			return nil, err
		}
		return pin.from(origin)
	}
	if err := s.fill(ctx, f, path, digits, size, fill); err != nil {
		return nil, err
	}
	final := s.artifact(digits)
	if err := errors.Join(f.Chmod(0o644), f.Sync()); err != nil {
		return nil, err
	}
	// mutant: the origin is kept before the artifact can be found
	if origin != nil {
		if err := origin(); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	if err := errors.Join(os.Chtimes(path, now, now), os.Rename(path, final), syncDir(filepath.Dir(final))); err != nil {
		return nil, err
	}
	// Change the exclusive lock to a user's shared lock. An eviction in between is possible, however unlikely.
	if err := lock(f, unix.LOCK_SH); err != nil {
		return nil, err
	}
	if !isAt(f, final) {
		return nil, ErrNotFound
	}
	pinned = true
	s.keep(f, digits)
	return &Pin{digestPrefix + digits, final, f}, nil
}

// from keeps the origin of an artifact that the store has already.
func (p *Pin) from(origin Origin) (*Pin, error) {
	if origin == nil {
		return p, nil
	}
	if err := origin(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// claim opens the partial file and waits until no other process writes it.
func (s *Store) claim(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = lock(f, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isAt(f, path) {
			return f, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
		if err == nil {
			continue // renamed or removed before it was locked
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another download of it: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fill completes the partial file and checks it. It tries the bytes of an earlier attempt once. If the result is wrong, it
// fetches the file from the start.
func (s *Store) fill(ctx context.Context, f *os.File, path, digits string, size int64, fill Fill) error {
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	// mutant: a download that goes on
	if have > size {
		have = 0
	}
	for {
		if err := f.Truncate(have); err != nil {
			return err
		}
		if _, err := f.Seek(have, io.SeekStart); err != nil {
			return err
		}
		if _, err := s.evict(s.limit-(size-have), false); err != nil {
			return err
		}
		if err := fill(ctx, f, have); err != nil {
			if noSpace(err) {
				// mutant: a full disk leaves nothing
				_ = os.Remove(path) // a longer next attempt is better than a full disk
			}
			return err
		}
		wrong := check(f, path, digits, size)
		if wrong == nil {
			return nil
		}
		// mutant: a download that went wrong is fetched anew
		if have == 0 {
			_ = os.Remove(path)
			return wrong
		}
		have = 0
	}
}

// check reads the whole partial file back and compares size and digest.
func check(f *os.File, path, digits string, size int64) error {
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(f, 0, size+1))
	if err != nil {
		return err
	}
	// mutant: digest of what was fetched
	if got := hex.EncodeToString(sum.Sum(nil)); n != size || got != digits {
		return fmt.Errorf("%w: got %d bytes with sha256:%s, want %d with sha256:%s", ErrDigest, n, got, size, digits)
	}
	if _, err := artifacts.Check(path); err != nil {
		return err
	}
	return nil
}

func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

func (s *Store) hint(err error, size int64) error {
	if noSpace(err) {
		return fmt.Errorf("%w (it needs %d bytes in %s; medusa cache prune frees some)", err, size, s.dir)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
