package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"medusa/artifacts"
)

// victim is a command that is killed. whole looks at the files that it would have left, and names those that are half-made.
type victim struct {
	name  string
	args  func(v *scene) []string
	whole func(ctx context.Context, a *attacker, v *scene) error
}

// scene is the surroundings of a victim: a place, a registry, and a name of its own in it.
type scene struct {
	*place
	hub  *hub
	base *base
	tag  string
	zoo  string
}

func (v *scene) made() string { return filepath.Join(v.out, "made.medusa") }

var victims = []victim{
	{"materialize", func(v *scene) []string { return []string{"materialize", "-o", v.made(), "--", v.zoo} }, wholeFile},
	{"restore", func(v *scene) []string { return []string{"restore", v.base.path, "--", v.zoo} }, nil},
	{"restore from the cache", func(v *scene) []string { return []string{"restore", v.hub.ref(), "--", v.zoo} }, nil},
	{"pull", func(v *scene) []string {
		return []string{"pull", v.hub.ref(), "--verify", v.hub.key + ".pub", "-o", v.made()}
	}, wholeFile},
	{"push", func(v *scene) []string {
		return []string{"push", v.base.path, v.hub.host + "/" + v.tag + ":1", "--sign", v.hub.key}
	}, wholeTag},
	{"verify", func(v *scene) []string { return []string{"verify", v.base.path, "--", v.zoo} }, nil},
	{"bake", func(v *scene) []string {
		return []string{"bake", "--base", v.hub.host + "/base:1", "--artifact", v.base.path, "-t", v.hub.host + "/" + v.tag + ":1"}
	}, nil},
	{"cache prune", func(*scene) []string { return []string{"cache", "prune", "--limit", "0"} }, nil},
	{"cache add", func(v *scene) []string { return []string{"cache", "add", v.base.path} }, nil},
	{"inspect", func(v *scene) []string { return []string{"inspect", v.base.path} }, nil},
}

// wholeFile demands that the file under the final name is an artifact, if there is one.
func wholeFile(_ context.Context, _ *attacker, v *scene) error {
	_, err := artifacts.Check(v.made())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// wholeTag demands that a tag, if it names something, names an artifact that can be pulled.
func wholeTag(ctx context.Context, _ *attacker, v *scene) error {
	if v.hub.Manifest(v.tag, "1") == nil {
		return nil
	}
	got := filepath.Join(v.out, "pushed.medusa")
	if err := v.must(ctx, "pull", v.hub.host+"/"+v.tag+":1", "-o", got); err != nil {
		return err
	}
	data, err := os.ReadFile(got)
	if err == nil && !bytes.Equal(data, v.hub.file) {
		err = errors.New("the tag gives other bytes than were pushed")
	}
	return err
}

// triesToKill bounds how often a command that ended before its moment came is killed again, each time after half as long.
const triesToKill = 12

// kills ends every command with SIGKILL at random moments.
func kills(ctx context.Context, a *attacker) error {
	n := a.share(100, len(victims)/2)
	h, err := a.startHub(ctx, a.bases[0])
	if err != nil {
		return err
	}
	defer h.server.Close()
	h.putBase()
	lasts := make([]time.Duration, len(victims))
	counts := map[string]int{}
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(a.seed, 3))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for k := range n {
		i, at := k%len(victims), r.Float64()
		if n < len(victims) {
			i = 2 * k
		}
		if lasts[i] == 0 {
			if lasts[i], err = a.unharmed(ctx, h, i); err != nil {
				return err
			}
		}
		if k < len(victims) && strings.HasPrefix(victims[i].name, "restore") {
			at = 1 // by then the engine serves, until it is ended
		}
		group.Go(func() error {
			after := time.Duration(at * float64(lasts[i]))
			for range triesToKill {
				killed, err := a.kill(ctx, h, i, k, after)
				if err != nil {
					return err
				}
				if killed {
					mu.Lock()
					defer mu.Unlock()
					counts[victims[i].name]++
					return nil
				}
				after /= 2
			}
			return fmt.Errorf("kill %s: it ended %d times before it was killed", victims[i].name, triesToKill)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.try(n)
	a.line("kills", counts)
	return nil
}

// putBase stores an image to bake onto.
func (h *hub) putBase() {
	layer := h.PutBlob([]byte("a layer of the base"))
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[%q]}}`, runtime.GOARCH, layer)
	h.PutManifest("base", "1", "application/vnd.oci.image.manifest.v1+json", fmt.Appendf(nil,
		`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},`+
			`"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":%q,"size":19}]}`, h.PutBlob([]byte(config)), len(config), layer))
}

func (a *attacker) scene(ctx context.Context, h *hub, i, k int) (*scene, error) {
	p, err := a.newPlace()
	if err != nil {
		return nil, err
	}
	v := &scene{p, h, a.bases[0], fmt.Sprintf("killed-%d", k), filepath.Join(a.build, "zoo")}
	if strings.Contains(victims[i].name, "cache") {
		err = p.must(ctx, "pull", h.ref())
	}
	return v, err
}

// unharmed returns how long a victim lasts that is not killed.
func (a *attacker) unharmed(ctx context.Context, h *hub, i int) (time.Duration, error) {
	v, err := a.scene(ctx, h, i, -1-i)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = v.must(ctx, victims[i].args(v)...)
	return time.Since(began), errors.Join(err, os.RemoveAll(v.dir))
}

// kill kills one victim after a while, and looks at its leftovers. It reports whether the victim had not ended by then.
func (a *attacker) kill(ctx context.Context, h *hub, i, k int, after time.Duration) (killed bool, err error) {
	v, err := a.scene(ctx, h, i, k)
	if err != nil {
		return false, err
	}
	where := fmt.Sprintf("kill of %s (after %v)", victims[i].name, after)
	// A killed restore leaves an engine that would serve on.
	cmd := v.command([]string{"ZOO_STAYS=1"}, "medusa", victims[i].args(v)...)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
	killed = cmd.ProcessState.ExitCode() < 0
	if pids := v.remaining(10 * time.Second); len(pids) > 0 {
		a.found(left, where, "a process 10 s later: %s", described(pids))
		v.end()
	}
	if victims[i].whole != nil {
		if err := victims[i].whole(ctx, a, v); err != nil {
			a.found(halfMade, where, "%v", err)
		}
	}
	a.cacheIntact(ctx, v.place, where)
	// The next start works, and sweeps.
	e, err := v.run(ctx, nil, "medusa", "restore", v.base.path, "--", v.zoo)
	if err != nil {
		return false, err
	}
	if output, err := outputOf(e.stdout); err != nil || output != v.base.output {
		a.found(unserved, where, "the next start: exit %d: %s", e.code, lastLine(e.stderr))
	}
	return killed, v.close(a.tally, where)
}
