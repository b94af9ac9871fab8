package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"medusa/test/attack/mutate"
	"medusa/test/memregistry"
)

// hub is a registry that holds one signed artifact under t:1 and answers as a fault wants.
type hub struct {
	*memregistry.Registry
	host     string
	server   *httptest.Server
	file     []byte                 // the signed artifact
	digest   string                 // of it
	artifact string                 // its path
	key      string                 // that signed it
	fault    atomic.Pointer[answer] // nil: none; connections of a command that has ended may still read it
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := h.fault.Load(); fault == nil || *fault == nil || !(*fault)(h, w, r) {
		h.Registry.ServeHTTP(w, r)
	}
}

// startHub pushes the base's artifact, signed.
func (a *attacker) startHub(ctx context.Context, b *base) (*hub, error) {
	h := &hub{Registry: &memregistry.Registry{Referrers: true}, key: a.key(), artifact: b.path}
	h.server = httptest.NewUnstartedServer(h)
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.server.Start()
	h.host = strings.TrimPrefix(h.server.URL, "http://")
	var err error
	if h.file, err = os.ReadFile(b.path); err != nil {
		return nil, err
	}
	h.digest = memregistry.Digest(h.file)
	if err := a.makeKey(ctx); err != nil {
		return nil, err
	}
	p, err := a.newPlace()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.dir)
	return h, p.must(ctx, "push", b.path, h.ref(), "--sign", h.key)
}

func (a *attacker) key() string { return filepath.Join(a.dir, "good.key") }

// makeKey makes the key that hubs sign with, if there is none yet.
func (a *attacker) makeKey(ctx context.Context) error {
	if _, err := os.Stat(a.key()); err == nil {
		return nil
	}
	p, err := a.newPlace()
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	return p.must(ctx, "keygen", a.key())
}

func (h *hub) ref() string { return h.host + "/t:1" }

// must runs a command that has to succeed.
func (p *place) must(ctx context.Context, args ...string) error {
	e, err := p.run(ctx, nil, "medusa", args...)
	if err == nil && e.code != 0 {
		err = fmt.Errorf("medusa %s: exit %d\n%s", strings.Join(args, " "), e.code, e.stderr)
	}
	return err
}

func isManifest(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/manifests/") && r.Method != http.MethodPut
}
func isReferrers(r *http.Request) bool { return strings.Contains(r.URL.Path, "/referrers/") }
func (h *hub) isFile(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, h.digest) && r.Method == http.MethodGet
}

type answer = func(h *hub, w http.ResponseWriter, r *http.Request) bool

// on answers requests that match with a function.
func on(match func(*http.Request) bool, with http.HandlerFunc) answer {
	return func(_ *hub, w http.ResponseWriter, r *http.Request) bool {
		if match(r) {
			with(w, r)
		}
		return match(r)
	}
}

// file answers requests for the artifact's bytes with others.
func file(change func([]byte) []byte) answer {
	return func(h *hub, w http.ResponseWriter, r *http.Request) bool {
		if h.isFile(r) {
			_, _ = w.Write(change(bytes.Clone(h.file)))
		}
		return h.isFile(r)
	}
}

// manifest answers requests for the artifact's manifest with a changed one under its own name.
func manifest(change func(m map[string]any)) answer {
	return func(h *hub, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/manifests/1") {
			return false
		}
		var m map[string]any
		if json.Unmarshal(h.Manifest("t", "1"), &m) != nil {
			return false
		}
		change(m)
		data, _ := json.Marshal(m)
		repo := "t"
		h.PutManifest(repo, "", m["mediaType"].(string), data) // so that its digest leads to it, too
		w.Header().Set("Content-Type", m["mediaType"].(string))
		w.Header().Set("Docker-Content-Digest", memregistry.Digest(data))
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(data)
		}
		return true
	}
}

func layers(m map[string]any) []any { return m["layers"].([]any) }

func layerField(name string, value any) answer {
	return manifest(func(m map[string]any) { layers(m)[0].(map[string]any)[name] = value })
}

func failing(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// lies are faults of a registry. Each pull with a key either fails or gives the bytes that the key's holder signed.
var lies = []struct {
	name    string
	answer  answer
	succeed bool // the pull has to succeed all the same
}{
	{"manifests fail", on(isManifest, failing(http.StatusInternalServerError)), false},
	{"no manifest", on(isManifest, failing(http.StatusNotFound)), false},
	{"an empty manifest", on(isManifest, failing(http.StatusOK)), false},
	{"a manifest that is no JSON", on(isManifest, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{")) }), false},
	{"a manifest of 5 MiB", on(isManifest, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 5<<20)) }), false},
	{"redirects without end", on(isManifest, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), false},
	{"no layers", manifest(func(m map[string]any) { m["layers"] = []any{} }), false},
	{"two layers", manifest(func(m map[string]any) { m["layers"] = append(layers(m), layers(m)[0]) }), false},
	{"a layer of no size", layerField("size", 0), false},
	{"a layer of 8 EiB", layerField("size", uint64(1)<<62), false},
	{"a layer of negative size", layerField("size", -1), false},
	{"a layer with another type", layerField("mediaType", "text/plain"), false},
	{"a layer whose digest is a path", layerField("digest", "sha256:../../../outside/etc/evil"), false},
	{"a manifest that nobody signed", manifest(func(m map[string]any) { m["annotations"] = map[string]any{"x": "y"} }), false},
	{"a flipped bit", file(func(b []byte) []byte { b[len(b)/2] ^= 4; return b }), false},
	{"half of a file", file(func(b []byte) []byte { return b[:len(b)/2] }), false},
	{"more than a file", file(func(b []byte) []byte { return append(b, b...) }), false},
	{"no bytes", file(func(b []byte) []byte { return nil }), false},
	{"dropped connections", func(h *hub, w http.ResponseWriter, r *http.Request) bool {
		if h.isFile(r) {
			_, _ = w.Write(h.file[:100])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		return false
	}, false},
	{"no file", func(h *hub, w http.ResponseWriter, r *http.Request) bool {
		if h.isFile(r) {
			w.WriteHeader(http.StatusNotFound)
		}
		return h.isFile(r)
	}, false},
	{"a redirect to somebody else", func(h *hub, w http.ResponseWriter, r *http.Request) bool {
		if h.isFile(r) {
			http.Redirect(w, r, "http://registry.invalid/blob", http.StatusTemporaryRedirect)
		}
		return h.isFile(r)
	}, false},
	{"no signatures", on(isReferrers, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		_, _ = w.Write([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`))
	}), false},
	{"forty fake signatures first", crowd, true},
}

// crowd puts forty false signatures with the key's name in front of the good one.
func crowd(h *hub, w http.ResponseWriter, r *http.Request) bool {
	if !isReferrers(r) {
		return false
	}
	rec := httptest.NewRecorder()
	h.Registry.ServeHTTP(rec, r)
	var index struct {
		SchemaVersion int              `json:"schemaVersion"`
		MediaType     string           `json:"mediaType"`
		Manifests     []map[string]any `json:"manifests"`
	}
	if json.Unmarshal(rec.Body.Bytes(), &index) != nil || len(index.Manifests) == 0 {
		return false
	}
	good := index.Manifests[0]
	signed := h.Manifest("t", good["digest"].(string))
	var list []map[string]any
	for i := range 40 {
		var m map[string]any
		_ = json.Unmarshal(signed, &m)
		blob := h.PutBlob([]byte(strings.Repeat(string(rune('A'+i)), 64)))
		m["layers"].([]any)[0].(map[string]any)["digest"] = blob
		data, _ := json.Marshal(m)
		fake := map[string]any{}
		for k, v := range good {
			fake[k] = v
		}
		fake["digest"], fake["size"] = h.PutManifest("t", "", good["mediaType"].(string), data), len(data)
		list = append(list, fake)
	}
	index.Manifests = append(list, good)
	w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
	_ = json.NewEncoder(w).Encode(index)
	return true
}

// registries is how many registries lie at once. A pull mostly waits before it tries again.
const registries = 8

// registry pulls with each fault, and twice from a cache in which an attacker has put a file.
func registry(ctx context.Context, a *attacker) error {
	type fault struct {
		where   string
		answer  answer
		succeed bool
		before  func(*hub) func(*place) error
	}
	faults := make(chan fault, len(lies)+2)
	for _, lie := range lies {
		faults <- fault{"registry with " + lie.name, lie.answer, lie.succeed, nil}
	}
	for name, foreign := range map[string]bool{"a file of its digest in the cache": false, "a file of its digest in the cache, by another user": true} {
		plant := func(h *hub) func(*place) error { return func(p *place) error { return a.plant(p, h, foreign) } }
		faults <- fault{"registry, and " + name, nil, false, plant}
	}
	close(faults)
	if err := a.makeKey(ctx); err != nil {
		return err
	}
	counts := map[string]int{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for range registries {
		group.Go(func() error {
			h, err := a.startHub(ctx, a.bases[0])
			if err != nil {
				return err
			}
			defer h.server.Close()
			for f := range faults {
				var before func(*place) error
				if f.before != nil {
					before = f.before(h)
				}
				how, err := a.pull(ctx, h, f.where, f.answer, f.succeed, before)
				if err != nil {
					return err
				}
				mu.Lock()
				counts[how]++
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.try(len(lies) + 2)
	a.line("registry faults", counts)
	return nil
}

// plant puts another artifact into the cache under the digest of the signed one.
func (a *attacker) plant(p *place, h *hub, foreign bool) error {
	data, size, files := mutate.Pack(mutate.Entry{Name: "evil", Data: "evil\n", Mode: 0o755})
	forged, err := a.bases[0].taken.Bundled("triton", filepath.Join(p.outside, "evil"), data, size, files)
	if err != nil {
		return err
	}
	name := filepath.Join(p.cache, "artifacts", strings.TrimPrefix(h.digest, "sha256:")+".medusa")
	err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, forged, 0o644))
	if err == nil && foreign && os.Getuid() == 0 {
		err = errors.Join(os.Chown(name, 65534, 65534), os.Chown(filepath.Dir(name), 65534, 65534), os.Chown(p.cache, 65534, 65534))
	}
	return err
}

// pull pulls with the good key while the registry lies, and then again while it does not.
func (a *attacker) pull(ctx context.Context, h *hub, where string, lie answer, succeed bool, before func(*place) error) (string, error) {
	p, err := a.newPlace()
	if err != nil {
		return "", err
	}
	if before != nil {
		if err := before(p); err != nil {
			return "", err
		}
	}
	h.fault.Store(&lie)
	got := filepath.Join(p.out, "pulled.medusa")
	e, err := p.run(ctx, nil, "medusa", "pull", h.ref(), "--verify", h.key+".pub", "-o", got)
	h.fault.Store(nil)
	if err != nil {
		return "", err
	}
	how := "refused"
	if text := panicked(e.stderr); text != "" {
		a.found(panics, where, "%s", text)
	}
	if e.late {
		a.found(hang, where, "no end in %v", patience)
	}
	data, readErr := os.ReadFile(got)
	switch {
	case e.code == 0 && !bytes.Equal(data, h.file):
		a.found(accepted, where, "pull --verify gives bytes that nobody signed")
	case e.code == 0:
		how = "pulled as signed"
	case readErr == nil:
		a.found(halfMade, where, "pull failed and left %d bytes under the final name", len(data))
	case succeed:
		a.found(unserved, where, "%s", lastLine(e.stderr))
	}
	if before == nil {
		if e, err = p.run(ctx, nil, "medusa", "pull", h.ref(), "--verify", h.key+".pub"); err != nil {
			return "", err
		} else if e.code != 0 {
			a.found(unserved, where, "the next pull fails: %s", lastLine(e.stderr))
		}
		a.cacheIntact(ctx, p, where)
	}
	return how, p.close(a.tally, where)
}

// cacheIntact demands that all files that the cache shows are whole.
func (a *attacker) cacheIntact(ctx context.Context, p *place, where string) {
	e, err := p.run(ctx, nil, "medusa", "cache", "verify")
	if err == nil && e.code != 0 {
		a.found(halfMade, where, "cache verify: %s", lastLine(e.stdout+e.stderr))
	}
}
