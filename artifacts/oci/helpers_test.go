package oci

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/graphir"
	"medusa/test/memregistry"
)

func TestMain(m *testing.M) {
	firstPause = time.Millisecond
	m.Run()
}

// world is a registry, an artifact and an empty cache.
type world struct {
	*memregistry.Registry
	host  string
	path  string // of the artifact
	data  []byte
	cache *store.Store
	// misbehave, if set, may answer instead of the registry.
	misbehave func(w http.ResponseWriter, r *http.Request) bool
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if w.misbehave == nil || !w.misbehave(rw, r) {
		w.Registry.ServeHTTP(rw, r)
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	w := &world{Registry: &memregistry.Registry{Referrers: true}}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.host = strings.TrimPrefix(server.URL, "http://")
	w.path, w.data = made(t, "H200")
	w.cache = emptyCache(t)
	return w
}

func emptyCache(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// made writes an artifact of several hundred thousand bytes for a GPU.
func made(t testing.TB, gpu string) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "llama.medusa")
	content := make([]byte, 300_000)
	for i, x := 0, uint32(7); i < len(content); i++ { // not compressible
		x = x*1664525 + 1013904223
		content[i] = byte(x >> 24)
	}
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 1 << 20, Live: true}},
		Sequence: []graphir.Step{{Alloc: 0}}, Contents: []graphir.Content{{Alloc: 0, Data: content}}}
	id := artifacts.Identity{{Key: artifacts.KeyGPUName, Value: gpu}, {Key: artifacts.KeyModelConfig, Value: "sha256:aa"},
		{Key: artifacts.KeyHostKernel, Value: "6.1"}, {Key: "engine.args", Value: strings.Repeat("x", maxFactor+1)}}
	if err := artifacts.Write(path, &artifacts.Artifact{Identity: id, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

func (w *world) push(t testing.TB, name string, o PushOptions) string {
	t.Helper()
	digest, err := (&Client{}).Push(context.Background(), w.path, w.host+"/"+name, o)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// pull returns the bytes of the pulled artifact in the cache.
func (w *world) pull(t testing.TB, name string, o PullOptions) ([]byte, error) {
	t.Helper()
	pin, _, err := (&Client{}).Pull(context.Background(), w.host+"/"+name, w.cache, o)
	if err != nil {
		w.nothingVisible(t)
		return nil, err
	}
	defer pin.Close()
	data, err := os.ReadFile(pin.Path)
	if err != nil {
		t.Fatal(err)
	}
	return data, nil
}

// nothingVisible demands that the cache lists no artifact.
func (w *world) nothingVisible(t testing.TB) {
	t.Helper()
	all, err := w.cache.List()
	if err != nil || len(all) != 0 {
		t.Errorf("the cache shows %v, %v", all, err)
	}
}

func newKey(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

// decode reads JSON from the registry.
func decode[T any](t testing.TB, data []byte) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return out
}

func sizeOf(data []byte) string { return strconv.Itoa(len(data)) }
