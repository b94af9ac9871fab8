package restore

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"medusa/artifacts"
)

// choose reads the artifact of a folder that fits this process, the last used one if several do. Only the process
// knows its device and model, so the choice cannot be made before.
func (s *source) choose(dir string, rank rank, factors artifacts.Identity, relaxed artifacts.Relaxed) *Fallback {
	paths, err := candidates(dir)
	if err != nil {
		return &Fallback{ArtifactMissing, err}
	}
	var nearest *artifacts.Mismatch
	var unread error
	for _, path := range paths {
		manifest, err := artifacts.ReadRankManifest(path, int(rank.index))
		if err != nil {
			unread = err // damaged, or evicted since it was listed
			continue
		}
		if m := artifacts.Compare(manifest.Identity, factors, relaxed); m != nil {
			if nearest == nil || len(m.Differences) < len(nearest.Differences) {
				nearest = m
			}
			continue
		}
		a, err := artifacts.ReadRank(path, int(rank.index))
		if err != nil {
			unread = err
			continue
		}
		s.take(path, a)
		now := time.Now()
		_ = os.Chtimes(path, now, now) // last used; a read-only store keeps its order
		return nil
	}
	switch {
	case nearest != nil:
		return &Fallback{Incompatible, fmt.Errorf("choose artifact: none of %d in %s fits; the nearest: %w", len(paths), dir, nearest)}
	case unread != nil:
		return &Fallback{codeOfRead(unread), unread}
	}
	return &Fallback{ArtifactMissing, fmt.Errorf("choose artifact: %s holds none", dir)}
}

// candidates lists a folder's artifacts, the last used first.
func candidates(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("choose artifact: %w", err)
	}
	type candidate struct {
		path string
		used time.Time
	}
	var found []candidate
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(e.Name(), artifacts.Suffix) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("choose artifact: %w", err)
		}
		found = append(found, candidate{filepath.Join(dir, e.Name()), info.ModTime()})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(b.used.Compare(a.used), strings.Compare(a.path, b.path))
	})
	var paths []string
	for _, c := range found {
		paths = append(paths, c.path)
	}
	return paths, nil
}
