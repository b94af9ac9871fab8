package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"medusa/internal/atomicfile"
)

// store keeps verdicts from run to run, in a file that is complete after each row.
type store struct {
	path   string
	commit string // that this run's verdicts are of

	lock    sync.Mutex
	results map[string]result // by row
	taken   map[string]int    // how many were taken, by commit
}

// result is a verdict, and the key of its inputs.
type result struct {
	Verdict verdict `json:"verdict"`
	Key     string  `json:"key"`
	Commit  string  `json:"commit"`
}

// openStore reads the file, or forgets it.
func openStore(path, commit string, forget bool) (*store, error) {
	s := &store{path: path, commit: commit, results: map[string]result{}, taken: map[string]int{}}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if forget {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return s, s.read()
}

// read takes over the verdicts of the file. Half a file, or another one, is no store, so all rows are tried.
func (s *store) read() error {
	data, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	results := map[string]result{}
	if err == nil && json.Unmarshal(data, &results) == nil {
		s.results = results
	}
	return nil
}

// take returns the verdict of a row if one of the keys is that of its inputs.
func (s *store) take(row string, keys ...string) (verdict, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	r, ok := s.results[row]
	if !ok || !slices.Contains(keys, r.Key) {
		return "", false
	}
	s.taken[r.Commit]++
	return r.Verdict, true
}

// put keeps a verdict if the test failed or crashed. Other verdicts may be due to a busy machine, or have to be mended. Another run may
// write at the same time.
func (s *store) put(row, key string, v verdict) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	lock, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // which releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	delete(s.results, row)
	if v == caught || v == crashed {
		s.results[row] = result{v, key, s.commit}
	}
	data, err := json.MarshalIndent(s.results, "", "\t")
	if err != nil {
		return err
	}
	return atomicfile.Write(s.path, 0o644, bytes.NewReader(data))
}

// summary says how many verdicts were taken, and which commits they are of.
func (s *store) summary(total int) string {
	n, commits := 0, []string{}
	for commit, rows := range s.taken {
		n += rows
		commits = append(commits, fmt.Sprintf("%s %d", commit, rows))
	}
	slices.Sort(commits)
	text := fmt.Sprintf("mutants: %d tried at %s, %d taken from %s", total-n, s.commit, n, s.path)
	if n > 0 {
		text += " (" + strings.Join(commits, ", ") + ")"
	}
	return text
}

// head names the commit that the files are of.
func head(ctx context.Context, root string) (string, error) {
	out, err := command(ctx, root, "git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("read the commit: %w", err)
	}
	changes, err := command(ctx, root, "git", "status", "--porcelain").Output()
	if err != nil {
		return "", fmt.Errorf("read what is not committed: %w", err)
	}
	name := strings.TrimSpace(string(out))
	if len(changes) > 0 {
		name += " with changes"
	}
	return name, nil
}
