package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"medusa/artifacts"
)

// Freed says what was removed.
type Freed struct {
	Artifacts, Partial int // artifacts and folders of what was unpacked from them; what nobody finished or misses
	Bytes              int64
	InUse              int // of the former, those that stay although they are beyond the limit
}

// Prune removes all unfinished downloads that nobody is at, artifacts that were set aside, and then the least recently
// used artifacts, and what was unpacked from them, until the rest takes limit bytes at most.
func (s *Store) Prune(limit int64) (Freed, error) { return s.evict(limit, true) }

// victim is a file, or a folder of what is unpacked, that may be removed.
type victim struct {
	path    string
	size    int64
	used    time.Time
	partial bool
}

func (s *Store) evict(limit int64, tidy bool) (Freed, error) {
	var freed Freed
	guard, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return freed, fmt.Errorf("prune cache: %w", err)
	}
	defer guard.Close()
	// Without it two processes would each free the same room twice.
	if err := lock(guard, unix.LOCK_EX); err != nil {
		return freed, fmt.Errorf("prune cache: %w", err)
	}
	victims, total, err := s.victims()
	if err != nil {
		return freed, fmt.Errorf("prune cache: %w", err)
	}
	for _, v := range victims {
		needed := total > limit
		if !needed && !(tidy && v.partial) {
			continue
		}
		removed, err := remove(v.path)
		if err != nil {
			return freed, fmt.Errorf("prune cache: %w", err)
		}
		switch {
		case !removed && !v.partial:
			freed.InUse++
		case removed:
			total -= v.size
			freed.Bytes += v.size
			if v.partial {
				freed.Partial++
			} else {
				freed.Artifacts++
			}
		}
	}
	return freed, s.forget()
}

// victims lists what may go, in the order in which it goes: unfinished downloads and what was set aside, then artifacts,
// the least recently used first.
func (s *Store) victims() (out []victim, total int64, err error) {
	for _, sub := range []string{partialDir, artifactDir} {
		files, err := os.ReadDir(filepath.Join(s.dir, sub))
		if err != nil {
			return nil, 0, err
		}
		for _, f := range files {
			info, err := f.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, 0, err
			}
			total += info.Size()
			out = append(out, victim{filepath.Join(s.dir, sub, f.Name()), info.Size(), info.ModTime(),
				sub == partialDir || !strings.HasSuffix(f.Name(), artifacts.Suffix)})
		}
	}
	unpacked, size, err := s.folders()
	if err != nil {
		return nil, 0, err
	}
	// mutant: what is unpacked counts
	out, total = append(out, unpacked...), total+size
	slices.SortStableFunc(out, func(a, b victim) int {
		if a.partial != b.partial {
			if a.partial {
				return -1
			}
			return 1
		}
		// mutant: the least recently used goes first
		return a.used.Compare(b.used)
	})
	return out, total, nil
}

// remove removes a file or folder that nobody has locked.
func remove(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	// mutant: eviction spares what is in use
	if err := lock(f, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if !isAt(f, path) {
		return false, nil
	}
	return true, removeTree(path)
}

// forget removes names, records and proofs of artifacts that are gone.
func (s *Store) forget() error {
	for _, sub := range []string{checkedDir, proofDir} {
		files, err := os.ReadDir(filepath.Join(s.dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune cache: %w", err)
		}
		for _, f := range files {
			if strings.HasPrefix(f.Name(), ".") {
				continue // being written
			}
			_, err := os.Stat(s.artifact(f.Name()))
			_, unfinished := os.Stat(s.partial(f.Name()))
			if errors.Is(err, fs.ErrNotExist) && errors.Is(unfinished, fs.ErrNotExist) {
				_ = os.Remove(filepath.Join(s.dir, sub, f.Name())) // it says nothing without its artifact
			}
		}
	}
	names, err := s.names()
	if err != nil {
		return err
	}
	for name, digest := range names {
		digits, err := hexOf(digest)
		if err == nil {
			_, err = os.Stat(s.artifact(digits))
		}
		if err == nil {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, nameDir, url.PathEscape(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune cache: %w", err)
		}
	}
	return nil
}

// Finding is what Verify says of one artifact.
type Finding struct {
	Entry
	Err error // nil: it is as it was stored
}

// Verify reads every artifact and removes those that are damaged, for the next pull to fetch them anew.
func (s *Store) Verify() ([]Finding, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, e := range all {
		finding := Finding{Entry: e, Err: s.verify(e)}
		if errors.Is(finding.Err, fs.ErrNotExist) {
			continue // evicted meanwhile
		}
		if errors.Is(finding.Err, ErrDigest) || errors.Is(finding.Err, artifacts.ErrCorrupt) {
			// Whoever has it open goes on with what it has: the name goes, in use or not.
			if err := os.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				finding.Err = errors.Join(finding.Err, err)
			}
		}
		out = append(out, finding)
	}
	return out, s.forget()
}

func (s *Store) verify(e Entry) error {
	f, err := os.Open(e.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	return check(f, e.Path, strings.TrimPrefix(e.Digest, digestPrefix), e.Size)
}
