package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"medusa/artifacts/store"
	"medusa/artifacts/trust"
	"medusa/internal/printable"
	"medusa/internal/scratch"
)

// judge asks the policy about an artifact of the cache.
func judge(cache *store.Store, policy *trust.Policy, digest, ref string) (warning string, err error) {
	s := trust.Subject{Name: digest, Digest: digest, Reference: ref, Exposed: cache.Exposed(digest)}
	data, err := cache.Proofs(digest)
	if err == nil {
		s.Proofs, err = trust.Decode(data)
	}
	if err != nil {
		return "", err
	}
	return policy.Judge(s)
}

func warn(log io.Writer, warning string) {
	if warning != "" {
		printable.Fprintf(log, "medusa: %s\n", warning)
	}
}

// candidate is one of several artifacts in a folder, among which the engine's process chooses.
type candidate struct {
	path  string
	used  time.Time
	judge func() (warning string, err error)
}

func inCache(cache *store.Store, policy *trust.Policy, log io.Writer) (dir string, release func(), err error) {
	entries, err := cache.List()
	if err != nil {
		return "", func() {}, err
	}
	var all []candidate
	for _, e := range entries {
		all = append(all, candidate{e.Path, e.Used, func() (string, error) { return examine(cache, policy, e.Digest) }})
	}
	return allowed(cache.Dir(), "the cache", all, log)
}

// allowed returns a folder with the artifacts among which the engine's process may choose. If the policy refuses some, that
// is a folder of links to the others. The engine's process reads no policy, and finds only these.
func allowed(whole, name string, all []candidate, log io.Writer) (dir string, release func(), err error) {
	release = func() {}
	var passed []candidate
	var refused, doubtful []string
	for _, c := range all {
		warning, err := c.judge()
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			refused = append(refused, err.Error())
		default:
			passed = append(passed, c)
			if warning != "" {
				doubtful = append(doubtful, warning)
			}
		}
	}
	if len(doubtful) > 0 {
		warn(log, fmt.Sprintf("%d of %d artifacts in %s are doubtful; the first: %s", len(doubtful), len(passed), name, doubtful[0]))
	}
	// mutant: a policy holds for what the engine's process chooses
	if len(refused) == 0 {
		return whole, release, nil
	}
	if len(passed) == 0 {
		return "", release, fmt.Errorf("choose artifact: %w: none of %d in %s is allowed; the first: %s", trust.ErrUntrusted, len(refused), name, refused[0])
	}
	warn(log, fmt.Sprintf("%d artifacts in %s are not considered; the first: %s", len(refused), name, refused[0]))
	folder, err := scratch.ForRun()
	if err != nil {
		return "", release, fmt.Errorf("choose artifact: %w", err)
	}
	dir, release = folder.Path, func() { _ = folder.Close() }
	for _, c := range passed {
		link := filepath.Join(dir, filepath.Base(c.path))
		used := unix.NsecToTimespec(c.used.UnixNano())
		err := os.Symlink(c.path, link)
		if err == nil { // they are tried in the order of their last use
			err = unix.UtimesNanoAt(unix.AT_FDCWD, link, []unix.Timespec{used, used}, unix.AT_SYMLINK_NOFOLLOW)
		}
		if err != nil {
			release()
			return "", func() {}, fmt.Errorf("choose artifact: %w", err)
		}
	}
	return dir, release, nil
}

// examine judges an artifact. If the policy requires signatures, it first checks the digest, because a policy must not
// judge unread bytes. A record can make the reading unnecessary.
func examine(cache *store.Store, policy *trust.Policy, digest string) (warning string, err error) {
	if policy.Required {
		if err := cache.Check(digest); err != nil {
			return "", err
		}
	}
	return judge(cache, policy, digest, "")
}
