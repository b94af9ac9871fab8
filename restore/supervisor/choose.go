package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
)

// Choice says which artifact is to be restored: one that Ref names, one of the cache that has the factors of Match, or,
// with Auto, the one of the cache that the engine's process finds to fit.
type Choice struct {
	Ref   string // a file, a digest, or a name in the cache
	Match []artifacts.Factor
	Auto  bool
}

// resolve returns the path for MEDUSA_ARTIFACT if the policy lets the artifact pass, and a lock that prevents its eviction
// meanwhile. A doubt about it is one line in log. resolve does not return the path of a refused artifact.
func (c Choice) resolve(policy *trust.Policy, log io.Writer) (path string, release func(), err error) {
	release = func() {}
	if !c.Auto && len(c.Match) == 0 && isPath(c.Ref) {
		if path, err = filepath.Abs(c.Ref); err != nil {
			return "", release, err
		}
		if isFolder(path) {
			return inFolder(path, policy, log)
		}
		warning, err := policy.JudgeFile(path)
		if err != nil {
			return "", release, err
		}
		warn(log, warning)
		return path, release, nil
	}
	cache, err := store.FromEnv()
	if err != nil {
		return "", release, err
	}
	if c.Auto {
		return inCache(cache, policy, log)
	}
	var entry store.Entry
	if len(c.Match) > 0 {
		entry, err = match(cache, c.Match)
	} else {
		entry, err = cache.Find(c.Ref)
	}
	if err != nil {
		return "", release, c.hint(err)
	}
	pin, err := cache.Pin(entry.Digest)
	if err != nil {
		return "", release, err
	}
	warning, err := judge(cache, policy, entry.Digest, c.Ref)
	if err != nil {
		return "", release, errors.Join(err, pin.Close())
	}
	warn(log, warning)
	return pin.Path, func() { _ = pin.Close() }, nil
}

// inFolder is the choice among a folder's artifacts. A single one needs none, so its directories can be placed.
func inFolder(path string, policy *trust.Policy, log io.Writer) (string, func(), error) {
	found, err := filepath.Glob(filepath.Join(escape(path), "*"+artifacts.Suffix))
	if err != nil || len(found) == 0 {
		return "", func() {}, fmt.Errorf("choose artifact: %s holds none (*%s)", path, artifacts.Suffix)
	}
	if len(found) == 1 {
		return Choice{Ref: found[0]}.resolve(policy, log)
	}
	var all []candidate
	for _, file := range found {
		info, err := os.Stat(file)
		if err != nil {
			continue // it is gone, or a link to nothing
		}
		all = append(all, candidate{file, info.ModTime(), func() (string, error) { return policy.JudgeFile(file) }})
	}
	return allowed(path, path, all, log)
}

// escape makes a path a pattern of itself.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isPath: a text that starts like a path or ends like an artifact's file is a file; all else is a digest or a name in the cache. The
// existing files do not matter, so a file in the working directory cannot take the place of an artifact.
func isPath(ref string) bool {
	return filepath.IsAbs(ref) || strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../") || strings.HasSuffix(ref, artifacts.Suffix)
}

// hint adds the way to name a file if a file of this name exists.
func (c Choice) hint(err error) error {
	if _, there := os.Stat(c.Ref); there == nil && c.Ref != "" {
		return fmt.Errorf("%w (a file of this name is ./%s)", err, c.Ref)
	}
	return err
}

// File returns the file that a command line means: that file, or an artifact of the cache by its digest or a name. It stays until release.
func File(ref string) (path string, release func(), err error) {
	release = func() {}
	if _, err := os.Stat(ref); err == nil || isPath(ref) {
		return ref, release, nil // the reader says what is wrong with it
	}
	cache, err := store.FromEnv()
	if err != nil {
		return "", release, err
	}
	entry, err := cache.Find(ref)
	if errors.Is(err, store.ErrNotFound) {
		return "", release, fmt.Errorf("find artifact %s: there is no such file, and no such name or digest in the cache (medusa cache ls)", ref)
	}
	if err != nil {
		return "", release, err
	}
	pin, err := cache.Pin(entry.Digest)
	if err != nil {
		return "", release, err
	}
	return pin.Path, func() { _ = pin.Close() }, nil
}

// Judge asks the policy about a file of File.
func Judge(path string, policy *trust.Policy) (warning string, err error) {
	cache, err := store.FromEnv()
	if err != nil || filepath.Dir(path) != cache.Dir() {
		return policy.JudgeFile(path)
	}
	return judge(cache, policy, "sha256:"+strings.TrimSuffix(filepath.Base(path), artifacts.Suffix), "")
}

// Exists returns the reason why there is no such artifact.
func (c Choice) Exists() error {
	if isPath(c.Ref) {
		_, err := os.Stat(c.Ref)
		return err
	}
	cache, err := store.FromEnv()
	if err == nil {
		_, err = cache.Find(c.Ref)
	}
	return err
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
