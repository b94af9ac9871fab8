package oci

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"medusa/artifacts/store"
	"medusa/test/memregistry"
)

// isFile says whether a request is for the bytes of the artifact file.
func (w *world) isFile(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/blobs/"+memregistry.Digest(w.data))
}

// cut passes n bytes of the answer and drops the connection.
func cut(w http.ResponseWriter, r *http.Request, from http.Handler, n int) {
	from.ServeHTTP(&cutting{ResponseWriter: w, left: n}, r)
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) > c.left {
		if c.left > 0 {
			_, _ = c.ResponseWriter.Write(p[:c.left])
		}
		if f, ok := c.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// A pull succeeds from a registry that drops every connection, and requests no byte twice.
func TestDroppedConnections(t *testing.T) {
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{})
	var requests atomic.Int32
	w.misbehave = func(rw http.ResponseWriter, r *http.Request) bool {
		if !w.isFile(r) {
			return false
		}
		requests.Add(1)
		cut(rw, r, w.Registry, 40_000)
		return true
	}
	got, err := w.pull(t, "m:1", PullOptions{})
	if err != nil || !bytes.Equal(got, w.data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	// Each further connection first requests the whole file and then the rest.
	if n, want := int(requests.Load()), 2*(len(w.data)/40_000)+1; n > want {
		t.Errorf("%d requests for %d pieces", n, want)
	}
}

func TestDroppedUpload(t *testing.T) {
	w := newWorld(t)
	var drops atomic.Int32
	w.misbehave = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/") && drops.Add(1) <= 2 {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	w.push(t, "m:1", PushOptions{})
	if _, err := w.pull(t, "m:1", PullOptions{}); err != nil || drops.Load() < 3 {
		t.Errorf("after %d drops: %v", drops.Load(), err)
	}
}

// A failed pull leaves no artifact visible in the cache, for any answer of a registry. Its error names the fault, and the next
// pull from a sane registry succeeds.
func TestLyingRegistry(t *testing.T) {
	w := newWorld(t)
	digest := w.push(t, "m:1", PushOptions{})
	file := memregistry.Digest(w.data)
	flipped := bytes.Clone(w.data)
	flipped[len(flipped)/2] ^= 0x10
	answer := func(rw http.ResponseWriter, data []byte) bool {
		_, _ = rw.Write(data)
		return true
	}
	isManifest := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/")
	}
	for name, row := range map[string]struct {
		want      string
		misbehave func(rw http.ResponseWriter, r *http.Request) bool
	}{
		"wrong bytes": {"content does not match its digest", func(rw http.ResponseWriter, r *http.Request) bool {
			return w.isFile(r) && answer(rw, flipped)
		}},
		"wrong length": {"Content-Length", func(rw http.ResponseWriter, r *http.Request) bool {
			return w.isFile(r) && answer(rw, w.data[:1000])
		}},
		"never more than a part": {"of " + sizeOf(w.data) + " bytes", func(rw http.ResponseWriter, r *http.Request) bool {
			if w.isFile(r) {
				cut(rw, r, w.Registry, 0)
			}
			return false
		}},
		"another digest": {"digest", func(rw http.ResponseWriter, r *http.Request) bool {
			if w.isFile(r) {
				rw.Header().Set("Docker-Content-Digest", digest)
				return answer(rw, w.data)
			}
			return false
		}},
		"another manifest": {"mismatch", func(rw http.ResponseWriter, r *http.Request) bool {
			if isManifest(r) {
				rw.Header().Set("Content-Type", typeManifest)
				return answer(rw, bytes.Replace(w.Manifest("m", "1"), []byte("H200"), []byte("B200"), 1))
			}
			return false
		}},
		"another config": {"mismatch", func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") && !w.isFile(r) {
				return answer(rw, bytes.Repeat([]byte("x"), len(identityOf(t, w.path).Document())))
			}
			return false
		}},
		"sent out of encryption": {"is not encrypted", func(rw http.ResponseWriter, r *http.Request) bool {
			if w.isFile(r) {
				http.Redirect(rw, r, "http://registry.invalid/blob", http.StatusTemporaryRedirect)
				return true
			}
			return false
		}},
		"no such blob": {"not found", func(rw http.ResponseWriter, r *http.Request) bool {
			if w.isFile(r) {
				rw.WriteHeader(http.StatusNotFound)
				return true
			}
			return false
		}},
		"broken": {"500", func(rw http.ResponseWriter, r *http.Request) bool {
			if isManifest(r) || r.Method == http.MethodHead {
				rw.WriteHeader(http.StatusInternalServerError)
				return true
			}
			return false
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w.cache, w.misbehave = emptyCache(t), row.misbehave
			if _, err := w.pull(t, "m:1", PullOptions{}); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
			w.misbehave = nil
			if got, err := w.pull(t, "m:1", PullOptions{}); err != nil || memregistry.Digest(got) != file {
				t.Errorf("next try: %d bytes, %v", len(got), err)
			}
		})
	}
}

// Declared sizes are checked before anything is fetched.
func TestDeclaredSizesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{})
	good := string(w.Manifest("m", "1"))
	file := `"size":` + sizeOf(w.data)
	for name, row := range map[string]struct{ manifest, want string }{
		"file":   {strings.Replace(good, file, `"size":9000000000000`, 1), "larger than the cache may grow"},
		"config": {strings.Replace(good, `"size":`, `"size":99999`, 1), "(at most 1048576)"},
	} {
		w.PutManifest("m", "large", typeManifest, []byte(row.manifest))
		w.misbehave = func(_ http.ResponseWriter, r *http.Request) bool {
			if w.isFile(r) {
				t.Errorf("%s: the file is fetched", name)
			}
			return false
		}
		if _, err := w.pull(t, "m:large", PullOptions{}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	w.PutManifest("m", "long", typeManifest, bytes.Repeat([]byte(" "), maxManifest+1))
	if _, err := w.pull(t, "m:long", PullOptions{}); err == nil || !strings.Contains(err.Error(), "(at most 4194304)") {
		t.Errorf("long manifest: %v", err)
	}
}

// A registry without ranges sends the whole file again, and the pull still continues from its offset.
func TestResumeWithoutRanges(t *testing.T) {
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{})
	var requests atomic.Int32
	w.misbehave = func(rw http.ResponseWriter, r *http.Request) bool {
		if !w.isFile(r) {
			return false
		}
		rw.Header().Set("Content-Length", sizeOf(w.data))
		if requests.Add(1) == 1 {
			(&cutting{ResponseWriter: rw, left: 100_000}).Write(w.data)
		}
		_, _ = rw.Write(w.data)
		return true
	}
	if got, err := w.pull(t, "m:1", PullOptions{}); err != nil || !bytes.Equal(got, w.data) || requests.Load() != 2 {
		t.Errorf("%d bytes in %d requests, %v", len(got), requests.Load(), err)
	}
}

// A pull that ends at any point leaves no artifact visible, and the pieces of several such pulls add up to one successful pull.
func TestEndedAnywhere(t *testing.T) {
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{})
	var stop atomic.Pointer[context.CancelCauseFunc]
	var after atomic.Int64
	w.misbehave = func(rw http.ResponseWriter, r *http.Request) bool {
		if w.isFile(r) {
			w.Registry.ServeHTTP(&ending{rw, &after, &stop}, r)
			return true
		}
		return false
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		ctx, cancel := context.WithCancelCause(context.Background())
		stop.Store(&cancel)
		after.Store(int64(r.IntN(len(w.data) / 40)))
		pin, _, err := (&Client{}).Pull(ctx, w.host+"/m:1", w.cache, PullOptions{})
		cancel(nil)
		if err == nil {
			_ = pin.Close()
			break
		}
		if !errors.Is(err, context.Canceled) && !errors.Is(err, errEnded) {
			t.Fatal(err)
		}
		w.nothingVisible(t)
	}
	after.Store(1 << 40)
	if got, err := w.pull(t, "m:1", PullOptions{}); err != nil || !bytes.Equal(got, w.data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

var errEnded = errors.New("ended")

// ending makes calls stop after a number of bytes.
type ending struct {
	http.ResponseWriter
	after *atomic.Int64
	stop  *atomic.Pointer[context.CancelCauseFunc]
}

func (e *ending) Write(p []byte) (int, error) {
	for len(p) > 0 {
		k := min(1000, len(p))
		if n, err := e.ResponseWriter.Write(p[:k]); err != nil {
			return n, err
		}
		if f, ok := e.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		if e.after.Add(-int64(k)) < 0 {
			(*e.stop.Load())(errEnded)
		}
		p = p[k:]
	}
	return len(p), nil
}

// Workers pull two artifacts into a cache with room for one. A pinned artifact stays complete, even if they evict others.
func TestWorkersPullAndEvict(t *testing.T) {
	w := newWorld(t)
	w.push(t, "m:a", PushOptions{})
	a := memregistry.Digest(w.data)
	w.path, w.data = made(t, "B200")
	w.push(t, "m:b", PushOptions{})
	b := memregistry.Digest(w.data)
	cache, err := store.Open(t.TempDir(), int64(len(w.data))*3/2)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			for round := range 12 {
				name, digest := "m:a", a
				if (round+worker)%2 == 1 {
					name, digest = "m:b", b
				}
				pin, _, err := (&Client{}).Pull(context.Background(), w.host+"/"+name, cache, PullOptions{})
				if err != nil {
					t.Error(err)
					continue
				}
				if pin.Digest != digest {
					t.Errorf("%s is %s", name, pin.Digest)
				}
				if _, err := cache.Prune(0); err != nil {
					t.Error(err)
				}
				checkFile(t, pin.Path, digest)
				_ = pin.Close()
			}
		})
	}
	group.Wait()
}

func checkFile(t testing.TB, path, digest string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || memregistry.Digest(data) != digest {
		t.Errorf("%d bytes, %v: not %s", len(data), err, digest)
	}
}
