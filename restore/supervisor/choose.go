package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"medusa/artifacts"
	"medusa/artifacts/store"
)

// Choice says which artifact is to be restored: one that Ref names, one of the cache that has the factors of Match, or,
// with Auto, the one of the cache that the engine's process finds to fit.
type Choice struct {
	Ref   string // a file, a digest, or a name in the cache
	Match []artifacts.Factor
	Auto  bool
}

// resolve returns the path for MEDUSA_ARTIFACT, and what keeps it from being evicted meanwhile.
func (c Choice) resolve() (path string, release func(), err error) {
	release = func() {}
	if !c.Auto && len(c.Match) == 0 && isPath(c.Ref) {
		path, err = filepath.Abs(c.Ref)
		return path, release, err
	}
	cache, err := store.FromEnv()
	if err != nil {
		return c.Ref, release, err
	}
	if c.Auto {
		return cache.Dir(), release, nil
	}
	var entry store.Entry
	if len(c.Match) > 0 {
		entry, err = match(cache, c.Match)
	} else {
		entry, err = cache.Find(c.Ref)
	}
	if err != nil {
		return c.Ref, release, err
	}
	pin, err := cache.Pin(entry.Digest)
	if err != nil {
		return c.Ref, release, err
	}
	return pin.Path, func() { _ = pin.Close() }, nil
}

// isPath: a file that is there is meant, even where its name could be one of the cache's; and so is what can only be a
// file's name.
func isPath(ref string) bool {
	if _, err := os.Stat(ref); err == nil {
		return true
	}
	return filepath.IsAbs(ref) || strings.HasPrefix(ref, ".") || strings.HasSuffix(ref, artifacts.Suffix)
}

// match returns the last used of the artifacts that have the factors, provided that they are all for the same.
func match(cache *store.Store, factors []artifacts.Factor) (store.Entry, error) {
	found, identities, err := cache.Match(factors)
	if err != nil {
		return store.Entry{}, err
	}
	if len(found) == 0 {
		return store.Entry{}, fmt.Errorf("find artifact with %s: %w (medusa cache ls shows what is)", list(factors), store.ErrNotFound)
	}
	for i, id := range identities[1:] {
		if m := artifacts.Compare(identities[0], id, nil); m != nil {
			return store.Entry{}, fmt.Errorf("find artifact with %s: %d have it, and %s differs from %s in %s (ask for that too)",
				list(factors), len(found), found[0].Digest, found[i+1].Digest, m.Differences[0].Key)
		}
	}
	return found[0], nil
}

func list(factors []artifacts.Factor) string {
	var out []string
	for _, f := range factors {
		out = append(out, f.Key+"="+f.Value)
	}
	return strings.Join(out, ", ")
}
