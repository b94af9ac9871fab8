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

// Freed counts the removed files.
type Freed struct {
	Artifacts, Partial int // artifacts and folders of unpacked bundled directories; unfinished downloads and files set aside
	Bytes              int64
	InUse              int // of the former: in use, so they stay although they exceed the limit
}

// Prune first removes unfinished downloads that no process is writing, and artifacts that were set aside. Then it removes
// artifacts and unpacked bundled directories, the least recently used first, until the rest takes at most limit bytes.
func (s *Store) Prune(limit int64) (Freed, error) { return s.evict(limit, true) }

// victim is a file, or a folder with an unpacked directory, that may be removed.
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
	// Without this lock, two processes would each free the same amount.
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

// victims lists candidates in the order of removal: unfinished downloads and files set aside, then artifacts, the least recently
// used first.
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

// remove removes a file or folder unless it is locked.
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

// forget removes names, records and proofs of artifacts that no longer exist.
func (s *Store) forget() error {
	for _, sub := range []string{checkedDir, proofDir} {
		files, err := os.ReadDir(filepath.Join(s.dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune cache: %w", err)
		}
		for _, f := range files {
			if strings.HasPrefix(f.Name(), ".") {
				continue // still being written
			}
			_, err := os.Stat(s.artifact(f.Name()))
			_, unfinished := os.Stat(s.partial(f.Name()))
			if errors.Is(err, fs.ErrNotExist) && errors.Is(unfinished, fs.ErrNotExist) {
				_ = os.Remove(filepath.Join(s.dir, sub, f.Name())) // useless without its artifact
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

// Finding is the result of Verify for one artifact.
type Finding struct {
	Entry
	Err error // nil: intact
}

// Verify reads every artifact and removes damaged ones, so that the next pull fetches them again.
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
			// Remove it even if it is in use: a process that has it open keeps its bytes.
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
