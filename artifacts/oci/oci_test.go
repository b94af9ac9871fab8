package oci

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"medusa/artifacts"
	"medusa/artifacts/trust"
	"medusa/test/memregistry"
)

func TestPushPull(t *testing.T) {
	w := newWorld(t)
	digest := w.push(t, "llm/llama:h200", PushOptions{})
	if again := w.push(t, "llm/llama:other", PushOptions{}); again != digest {
		t.Errorf("the same artifact became %s and %s", digest, again)
	}
	for _, ref := range []string{"llm/llama:h200", "llm/llama@" + digest} {
		w.cache = emptyCache(t)
		if got, err := w.pull(t, ref, PullOptions{}); err != nil || !bytes.Equal(got, w.data) {
			t.Errorf("%s: %d bytes, %v", ref, len(got), err)
		}
		if e, err := w.cache.Find(w.host + "/" + ref); err != nil || e.Digest != memregistry.Digest(w.data) {
			t.Errorf("its name: %+v %v", e, err)
		}
	}
	m := decode[ocispec.Manifest](t, w.Manifest("llm/llama", "h200"))
	id := identityOf(t, w.path)
	want := map[string]string{annotationIdentity: id.Digest(), "io.medusa.factor.gpu.name": "H200", "io.medusa.factor.model.config": "sha256:aa"}
	if len(m.Annotations) != len(want) {
		t.Errorf("annotations %v", m.Annotations)
	}
	for k, v := range want {
		if m.Annotations[k] != v {
			t.Errorf("%s is %q", k, m.Annotations[k])
		}
	}
	if m.ArtifactType != typeArtifact || m.Config.MediaType != typeIdentity || !bytes.Equal(w.Blob(m.Config.Digest.String()), id.Document()) ||
		m.Layers[0].MediaType != typeFile || m.Layers[0].Annotations[annotationTitle] != "llama.medusa" {
		t.Errorf("manifest %+v", m)
	}
}

func identityOf(t testing.TB, path string) artifacts.Identity {
	t.Helper()
	a, err := artifacts.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return a.Identity
}

func TestIndexForSeveralGPUs(t *testing.T) {
	w := newWorld(t)
	gpu := func(name string) PullOptions {
		return PullOptions{Match: []artifacts.Factor{{Key: artifacts.KeyGPUName, Value: name}}}
	}
	w.push(t, "m:1", PushOptions{}) // not an index yet
	h200 := w.data
	w.path, w.data = made(t, "B200")
	w.push(t, "m:1", PushOptions{Add: true})
	w.push(t, "m:1", PushOptions{Add: true}) // replaces itself
	b200 := w.data
	if index := decode[ocispec.Index](t, w.Manifest("m", "1")); len(index.Manifests) != 2 {
		t.Fatalf("index %+v", index)
	}
	for name, want := range map[string][]byte{"H200": h200, "B200": b200} {
		w.cache = emptyCache(t)
		if got, err := w.pull(t, "m:1", gpu(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	w.cache = emptyCache(t)
	for _, o := range []PullOptions{gpu("A100"), {}} {
		_, err := w.pull(t, "m:1", o)
		var ambiguous *AmbiguousError
		if !errors.As(err, &ambiguous) || ambiguous.Found == 1 || !strings.Contains(err.Error(), `"H200"`) || !strings.Contains(err.Error(), `"B200"`) {
			t.Errorf("%v: %v", o.Match, err)
		}
	}
}

func TestSignatures(t *testing.T) {
	public, private := newKey(t)
	foreign, other := newKey(t)
	for _, api := range []bool{true, false} {
		w := newWorld(t)
		w.Referrers = api
		w.push(t, "m:unsigned", PushOptions{})
		_, err := w.pull(t, "m:unsigned", PullOptions{Verify: trust.Require("test", public)})
		if !errors.Is(err, trust.ErrSignature) {
			t.Errorf("unsigned: %v", err)
		}
		w.path, w.data = made(t, "signed")
		w.push(t, "m:signed", PushOptions{Sign: other})
		w.push(t, "m:signed", PushOptions{Sign: private})
		if _, err := w.pull(t, "m:signed", PullOptions{Verify: trust.Require("test", public)}); err != nil {
			t.Errorf("signed by two (API %v): %v", api, err)
		}
		w.cache = emptyCache(t)
		if _, err := w.pull(t, "m:signed", PullOptions{Verify: trust.Require("test", foreign)}); err != nil {
			t.Errorf("signed by two (API %v): %v", api, err)
		}
		w.cache = emptyCache(t)
		third, _ := newKey(t)
		if _, err := w.pull(t, "m:signed", PullOptions{Verify: trust.Require("test", third)}); !errors.Is(err, trust.ErrSignature) {
			t.Errorf("signed by others (API %v): %v", api, err)
		}
	}
}

// Without a valid signature, only manifests are requested.
func TestSignatureComesFirst(t *testing.T) {
	w := newWorld(t)
	public, _ := newKey(t)
	_, other := newKey(t)
	w.push(t, "m:1", PushOptions{Sign: other})
	w.misbehave = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		return false
	}
	if _, err := w.pull(t, "m:1", PullOptions{Verify: trust.Require("test", public)}); !errors.Is(err, trust.ErrSignature) {
		t.Error(err)
	}
}

// A signature that was moved to another manifest, or that claims another key, is not accepted.
func TestForgedSignature(t *testing.T) {
	w := newWorld(t)
	public, private := newKey(t)
	w.push(t, "m:good", PushOptions{Sign: private})
	w.path, w.data = made(t, "evil")
	evil := w.push(t, "m:evil", PushOptions{})
	var index ocispec.Index
	good := memregistry.Digest(w.Manifest("m", "good"))
	repo, err := (&Client{}).repository(w.host + "/m:good")
	if err != nil {
		t.Fatal(err)
	}
	d, err := repo.Resolve(context.Background(), good)
	if err != nil {
		t.Fatal(err)
	}
	err = repo.Referrers(context.Background(), d, typeSignature, func(r []ocispec.Descriptor) error {
		index.Manifests = append(index.Manifests, r...)
		return nil
	})
	if err != nil || len(index.Manifests) != 1 {
		t.Fatalf("%v %v", index, err)
	}
	moved := bytes.ReplaceAll(w.Manifest("m", index.Manifests[0].Digest.String()), []byte(good), []byte(evil))
	w.PutManifest("m", "", typeManifest, moved)
	if _, err := w.pull(t, "m:evil", PullOptions{Verify: trust.Require("test", public)}); !errors.Is(err, trust.ErrSignature) || !strings.Contains(err.Error(), "1 signatures found") {
		t.Error(err)
	}
}

func TestSubject(t *testing.T) {
	w := newWorld(t)
	model := w.PutManifest("m", "model", typeManifest, []byte(`{"schemaVersion":2,"mediaType":"`+typeManifest+`"}`))
	w.push(t, "m:1", PushOptions{Subject: w.host + "/m:model"})
	if m := decode[ocispec.Manifest](t, w.Manifest("m", "1")); m.Subject == nil || m.Subject.Digest.String() != model {
		t.Errorf("subject %+v", m.Subject)
	}
	_, err := (&Client{}).Push(context.Background(), w.path, w.host+"/m:1", PushOptions{Subject: w.host + "/n:model"})
	if err == nil || !strings.Contains(err.Error(), "referrers live with their subject") {
		t.Error(err)
	}
}

func TestPullRefusesWhatIsNoArtifact(t *testing.T) {
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{})
	good := string(w.Manifest("m", "1"))
	for name, text := range map[string]string{
		"image":         `{"schemaVersion":2,"mediaType":"` + typeManifest + `","config":{"mediaType":"x","digest":"` + memregistry.Digest(nil) + `","size":0},"layers":[]}`,
		"other type":    strings.Replace(good, typeArtifact, "application/x", 1),
		"no layer":      strings.Replace(good, `"layers":[{`, `"layers":[],"x":[{`, 1),
		"other layer":   strings.Replace(good, typeFile, "application/x", 1),
		"sha512":        strings.Replace(good, "sha256:", "sha512:", 1),
		"negative size": strings.Replace(good, `"size":`, `"size":-`, 1),
		"no JSON":       "hello",
		"not an object": "[]",
		"version":       strings.Replace(good, `"schemaVersion":2`, `"schemaVersion":3`, 1),
	} {
		w.PutManifest("m", "bad", typeManifest, []byte(text))
		if _, err := w.pull(t, "m:bad", PullOptions{}); !errors.Is(err, errNotArtifact) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lying := strings.Replace(good, memregistry.Digest(identityOf(t, w.path).Document()), w.PutBlob([]byte(`{"version":1,"factors":{}}`)), 1)
	lying = strings.Replace(lying, `"size":`+sizeOf(identityOf(t, w.path).Document()), `"size":26`, 1)
	w.PutManifest("m", "bad", typeManifest, []byte(lying))
	if _, _, err := (&Client{}).Pull(context.Background(), w.host+"/m:bad", w.cache, PullOptions{}); !errors.Is(err, errNotArtifact) || !strings.Contains(err.Error(), "its config says") {
		t.Errorf("another identity: %v", err)
	}
}

func TestReferences(t *testing.T) {
	w := newWorld(t)
	for ref, want := range map[string]string{
		"llama": "want REGISTRY/REPOSITORY:TAG", w.host + "/m": "needs a tag", w.host + "/m:none": "not found", "": "want REGISTRY",
	} {
		if _, _, err := (&Client{}).Pull(context.Background(), ref, w.cache, PullOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", ref, err, want)
		}
	}
}

func TestPlainHTTPOnlyForLoopback(t *testing.T) {
	for host, want := range map[string]bool{"localhost:5000": true, "127.0.0.1:5000": true, "127.9.9.9": true, "[::1]:5000": true, "localhost": true,
		"registry.example": false, "10.0.0.1:5000": false, "localhost.example:5000": false, "[2001:db8::1]:443": false} {
		repo, err := (&Client{}).repository(host + "/m:1")
		if err == nil && repo.PlainHTTP != want || loopback(host) != want {
			t.Errorf("%s: plain %v, %v", host, !want, err)
		}
	}
	to := func(url string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, row := range []struct {
		from, to string
		ok       bool
	}{
		{"https://registry.example/v2/", "https://blobs.example/x", true}, {"https://registry.example/v2/", "http://blobs.example/x", false},
		{"https://registry.example/v2/", "http://localhost/x", false}, {"http://localhost/v2/", "http://127.0.0.1/x", true},
		{"http://localhost/v2/", "http://blobs.example/x", false},
	} {
		if err := (&Client{}).checkRedirect(to(row.to), []*http.Request{to(row.from)}); (err == nil) != row.ok {
			t.Errorf("%s to %s: %v", row.from, row.to, err)
		}
	}
}

// Credentials come from the docker configuration.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	w.misbehave = func(rw http.ResponseWriter, r *http.Request) bool {
		if name, password, ok := r.BasicAuth(); ok && name == "user" && password == "secret" {
			return false
		}
		rw.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	}
	_, err := (&Client{}).Push(context.Background(), w.path, w.host+"/m:1", PushOptions{})
	if err == nil || !strings.Contains(err.Error(), "401") && !strings.Contains(err.Error(), "credential") {
		t.Errorf("without: %v", err)
	}
	config := `{"auths":{"` + w.host + `":{"auth":"dXNlcjpzZWNyZXQ="}}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.push(t, "m:1", PushOptions{})
	if _, err := w.pull(t, "m:1", PullOptions{}); err != nil {
		t.Error(err)
	}
}
