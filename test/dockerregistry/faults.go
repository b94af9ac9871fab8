package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const kills = 200

// shows demands that a cache shows n artifacts, all of them whole.
func (t *test) shows(cache string, n int) error {
	out, _, err := t.medusa(cache, nil, "cache", "ls", "-o", "json")
	if err != nil {
		return err
	}
	var all []struct{ Digest, Path string }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return err
	}
	if n >= 0 && len(all) != n {
		return fmt.Errorf("the cache shows %s, not %d artifacts", out, n)
	}
	for _, e := range all {
		data, err := os.ReadFile(e.Path)
		if err != nil {
			return err
		}
		if digestOf(data) != e.Digest {
			return fmt.Errorf("%s is half-made: %d bytes", e.Digest, len(data))
		}
	}
	return nil
}

func (t *test) badRegistry() error {
	ref := t.proxy.host + "/llm/tiny:v1"
	defer t.proxy.honest()
	t.proxy.drop.Store(300 << 10)
	if _, _, err := t.medusa(t.path("dropped"), nil, "pull", ref); err != nil {
		return err
	}
	if err := t.shows(t.path("dropped"), 1); err != nil {
		return err
	}
	t.proxy.honest()
	for what, spoil := range map[string]func(){
		"bytes":   func() { t.proxy.flip.Store(true) },
		"digests": func() { t.proxy.digest.Store(true) },
	} {
		cache := t.path("wrong-" + what)
		spoil()
		if err := t.fails(cache, nil, "digest", "pull", ref); err != nil {
			return err
		}
		if err := t.shows(cache, 0); err != nil {
			return err
		}
		t.proxy.honest()
		if _, _, err := t.medusa(cache, nil, "pull", ref); err != nil {
			return fmt.Errorf("next try: %w", err)
		}
	}
	return nil
}

// fullDisk pulls into a file system with too little room, in a mount namespace of its own.
func (t *test) fullDisk() error {
	cache := t.path("full")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	script := fmt.Sprintf(`mount -t tmpfs -o size=1m,mode=700 tmpfs %[1]q || exit 99
		%[2]q pull %[3]q; echo "rc=$?"; find %[1]q -type f -size +0; %[2]q cache ls; umount %[1]q && mount -t tmpfs -o size=8m,mode=700 tmpfs %[1]q && %[2]q pull %[3]q && echo again`,
		cache, filepath.Join(t.build, "medusa"), t.ref("v1"))
	cmd := exec.Command("unshare", "--map-root-user", "--mount", "sh", "-c", script)
	cmd.Env = append(os.Environ(), "MEDUSA_CACHE="+cache, "DOCKER_CONFIG="+t.dir)
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	for _, want := range []string{"no space left on device", "medusa cache prune frees some", "rc=1", "again"} {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	// find and ls, between the two pulls, show no file and no artifact.
	_, between, _ := strings.Cut(text, "rc=1\n")
	if files, _, _ := strings.Cut(between, "DIGEST"); files != "" || strings.Count(between, "sha256:") != 1 {
		return fmt.Errorf("something was left:\n%s", text)
	}
	return nil
}

// workers: a cache with room for one artifact, and processes that want two.
func (t *test) workers() error {
	info, err := os.Stat(t.large)
	if err != nil {
		return err
	}
	env := []string{fmt.Sprintf("MEDUSA_CACHE_LIMIT=%d", info.Size()+1000)}
	cache := t.path("workers")
	var group sync.WaitGroup
	errs := make([]error, 2)
	for w := range errs {
		group.Go(func() {
			for round := range 15 {
				match := []string{"9.0", "8.0"}[(w+round)%2]
				if _, _, err := t.medusa(cache, env, "pull", t.ref("all"), "--match", "gpu.compute_capability="+match); err != nil {
					errs[w] = err
					return
				}
				if _, _, err := t.medusa(cache, env, "cache", "verify"); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := t.shows(cache, 1); err != nil {
		return err
	}
	if _, _, err := t.medusa(cache, nil, "pull", t.ref("v1")); err != nil {
		return err
	}
	return t.restores(cache, nil, t.ref("v1"))
}

// killed kills pulls at random moments. The cache then shows the whole artifact or none, and the next pull goes on.
func (t *test) killed() error {
	defer t.proxy.honest()
	t.proxy.slow.Store(true)
	ref := t.proxy.host + "/llm/tiny:v1"
	began := time.Now()
	cache := t.path("killed")
	if _, _, err := t.medusa(cache, nil, "pull", ref); err != nil {
		return err
	}
	whole := time.Since(began)
	r := rand.New(rand.NewPCG(3, 4))
	finished, resumed := 0, 0
	for range kills {
		if complete, err := t.killOne(cache, ref, time.Duration(r.Int64N(int64(whole)))); err != nil {
			return err
		} else if complete {
			finished++
			if err := os.RemoveAll(cache); err != nil {
				return err
			}
			continue
		}
		if err := t.shows(cache, -1); err != nil {
			return err
		}
		if left, _ := filepath.Glob(filepath.Join(cache, "partial", "*")); len(left) > 0 {
			resumed++
		}
	}
	if finished == kills || resumed < kills/4 {
		return fmt.Errorf("of %d pulls %d finished before they were killed and %d left a part: the points were not spread", kills, finished, resumed)
	}
	t.proxy.honest()
	if _, _, err := t.medusa(cache, nil, "pull", ref); err != nil {
		return fmt.Errorf("after %d kills: %w", kills, err)
	}
	return t.restores(cache, nil, ref)
}

// killOne says whether the pull was faster than its killer.
func (t *test) killOne(cache, ref string, after time.Duration) (bool, error) {
	cmd := exec.Command(filepath.Join(t.build, "medusa"), "pull", ref)
	cmd.Env = append(os.Environ(), "MEDUSA_CACHE="+cache, "DOCKER_CONFIG="+t.dir)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err == nil {
		return true, nil
	}
	if errors.As(err, &exit) && exit.ExitCode() == -1 { // by the signal
		return false, nil
	}
	return false, fmt.Errorf("pull: %w", err)
}
