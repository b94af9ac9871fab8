package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"medusa/artifacts"
	"medusa/internal/atomicfile"
	"medusa/internal/contract"
	"medusa/internal/private"
)

// defaultLimit is the limit of a store in bytes unless MEDUSA_CACHE_LIMIT sets another.
const defaultLimit = 20 << 30

// Store is a cache directory. It has no state in memory, so copies and processes can share it.
type Store struct {
	dir   string
	limit int64
}

// Open returns the store in dir, and makes dir if it is missing. limit is in bytes.
func Open(dir string, limit int64) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	s := &Store{dir, limit}
	subs := []string{artifactDir, nameDir, partialDir, checkedDir, proofDir, driverDir}
	for _, sub := range subs {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			// A read-only store can still be read.
			if _, stat := os.Stat(filepath.Join(dir, artifactDir)); stat != nil {
				return nil, fmt.Errorf("open cache: %w", err)
			}
		}
	}
	// A user who can write here chooses the graphs that are restored.
	for _, sub := range append(subs, "") {
		if err := ours(filepath.Join(dir, sub)); err != nil && !(sub != "" && errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("open cache: %w (set "+contract.EnvCache+" to a folder that is this user's alone)", err)
		}
	}
	return s, nil
}

func ours(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	// mutant: a cache of others is refused
	return private.File(f)
}

// Folder returns $MEDUSA_CACHE, or else medusa below the user's cache directory.
func Folder() (string, error) {
	if dir := os.Getenv(contract.EnvCache); dir != "" {
		return dir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("open cache: %w (set "+contract.EnvCache+")", err)
	}
	return filepath.Join(base, "medusa"), nil
}

// FromEnv opens the store in Folder, with the limit $MEDUSA_CACHE_LIMIT (bytes, or with a suffix K, M, G, T).
func FromEnv() (*Store, error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	limit := int64(defaultLimit)
	if text := os.Getenv(contract.EnvCacheLimit); text != "" {
		if limit, err = ParseSize(text); err != nil {
			return nil, fmt.Errorf("read "+contract.EnvCacheLimit+": %w", err)
		}
	}
	return Open(dir, limit)
}

// ParseSize reads a number of bytes, optionally with a suffix K, M, G or T (powers of 1024).
func ParseSize(text string) (int64, error) {
	number, shift := text, 0
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if rest, found := strings.CutSuffix(text, suffix); found {
			number, shift = rest, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("%q is not a size (such as 500M or 20G)", text)
	}
	return n << shift, nil
}

const (
	artifactDir = "artifacts"
	nameDir     = "names"
	partialDir  = "partial"
)

// Dir returns the folder of the artifacts, for processes that choose one themselves.
func (s *Store) Dir() string { return filepath.Join(s.dir, artifactDir) }

// Limit returns the store's limit in bytes.
func (s *Store) Limit() int64 { return s.limit }

const digestPrefix = "sha256:"

// hexOf returns the 64 digits of a digest.
func hexOf(digest string) (string, error) {
	digits, found := strings.CutPrefix(digest, digestPrefix)
	if !found || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not sha256: and 64 lower-case hexadecimal digits", digest)
	}
	return digits, nil
}

func (s *Store) artifact(digits string) string {
	return filepath.Join(s.dir, artifactDir, digits+artifacts.Suffix)
}

func (s *Store) partial(digits string) string { return filepath.Join(s.dir, partialDir, digits) }

// Entry is one artifact of a store.
type Entry struct {
	Digest string    `json:"digest"`
	Size   int64     `json:"size"` // bytes
	Used   time.Time `json:"used"`
	Names  []string  `json:"names"`
	Path   string    `json:"path"`
}

// List returns the artifacts, the most recently used first.
func (s *Store) List() ([]Entry, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(s.Dir())
	if err != nil {
		return nil, fmt.Errorf("list cache: %w", err)
	}
	var out []Entry
	for _, f := range files {
		digits, found := strings.CutSuffix(f.Name(), artifacts.Suffix)
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) || !found {
			continue // evicted meanwhile, or set aside
		}
		if err != nil {
			return nil, fmt.Errorf("list cache: %w", err)
		}
		e := Entry{Digest: digestPrefix + digits, Size: info.Size(), Used: info.ModTime(), Path: filepath.Join(s.Dir(), f.Name())}
		for name, digest := range names {
			if digest == e.Digest {
				e.Names = append(e.Names, name)
			}
		}
		slices.Sort(e.Names)
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return out, nil
}

// Find returns the artifact with a digest, the beginning of a digest, or a name.
func (s *Store) Find(ref string) (Entry, error) {
	all, err := s.List()
	if err != nil {
		return Entry{}, err
	}
	var found []Entry
	for _, e := range all {
		if slices.Contains(e.Names, ref) || len(ref) >= len(digestPrefix)+8 && strings.HasPrefix(e.Digest, ref) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return Entry{}, fmt.Errorf("find %s: %w (fetch it with medusa pull; list the cache with medusa cache ls)", ref, ErrNotFound)
	case 1:
		return found[0], nil
	}
	return Entry{}, fmt.Errorf("find %s: %d digests begin with it", ref, len(found))
}

// Match returns the artifacts whose identity has all the given factors, the most recently used first.
func (s *Store) Match(factors []artifacts.Factor) ([]Entry, []artifacts.Identity, error) {
	all, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	var found []Entry
	var identities []artifacts.Identity
	for _, e := range all {
		m, err := artifacts.ReadManifest(e.Path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, artifacts.ErrCorrupt) || errors.Is(err, artifacts.ErrVersion) {
			continue // evicted meanwhile, or damaged, which Verify reports
		}
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(factors, func(f artifacts.Factor) bool { value, set := m.Identity.Get(f.Key); return !set || value != f.Value }) {
			found, identities = append(found, e), append(identities, m.Identity)
		}
	}
	return found, identities, nil
}

// names returns the digest of each name.
func (s *Store) names() (map[string]string, error) {
	files, err := os.ReadDir(filepath.Join(s.dir, nameDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list cache: %w", err)
	}
	out := map[string]string{}
	for _, f := range files {
		name, err := url.PathUnescape(f.Name())
		if err != nil || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.dir, nameDir, f.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list cache: %w", err)
		}
		out[name] = strings.TrimSpace(string(data))
	}
	return out, nil
}

// name gives a digest a name.
func (s *Store) name(name, digest string) error {
	file := url.PathEscape(name)
	if file == "" || len(file) > 200 || strings.HasPrefix(file, ".") || strings.HasPrefix(name, digestPrefix) {
		return fmt.Errorf("name %q: a name must not be empty, be a digest, start with a dot or have more than 200 bytes", name)
	}
	return atomicfile.Write(filepath.Join(s.dir, nameDir, file), 0o644, strings.NewReader(digest+"\n"))
}
