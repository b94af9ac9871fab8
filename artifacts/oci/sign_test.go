package oci

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"medusa/artifacts"
	"medusa/artifacts/trust"
	"medusa/test/memregistry"
)

// forge adds signatures of a manifest that claim a key but were not made with it.
func (w *world) forge(t *testing.T, repo, tag string, key ed25519.PublicKey, count int) {
	t.Helper()
	subject := w.Manifest(repo, tag)
	w.PutBlob([]byte("{}"))
	fake := make([]byte, ed25519.SignatureSize)
	blob := w.PutBlob(fake)
	for i := range count {
		data, err := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": typeManifest, "artifactType": typeSignature,
			"config":      describe(typeEmpty, []byte("{}")),
			"layers":      []any{map[string]any{"mediaType": typeEd25519, "digest": blob, "size": len(fake)}},
			"subject":     map[string]any{"mediaType": typeManifest, "digest": memregistry.Digest(subject), "size": len(subject)},
			"annotations": map[string]string{annotationKey: trust.KeyID(key), "n": fmt.Sprint(i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.PutManifest(repo, "", typeManifest, data)
	}
}

// fakesFirst makes the registry list forged signatures first.
func (w *world) fakesFirst() {
	w.misbehave = func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/referrers/") {
			return false
		}
		all := httptest.NewRecorder()
		w.Registry.ServeHTTP(all, r)
		var index ocispec.Index
		if json.Unmarshal(all.Body.Bytes(), &index) != nil {
			return false
		}
		var fakes, real []ocispec.Descriptor
		for _, d := range index.Manifests {
			if d.Annotations["n"] != "" {
				fakes = append(fakes, d)
			} else {
				real = append(real, d)
			}
		}
		index.Manifests = append(fakes, real...)
		rw.Header().Set("Content-Type", typeIndex)
		_ = json.NewEncoder(rw).Encode(index)
		return true
	}
}

// A writer to the repository can add any number of signatures that claim the key. The real one is still found up to the bound;
// beyond it, the error mentions the bound.
func TestFakesDoNotCrowdOutTheSignature(t *testing.T) {
	public, private := newKey(t)
	for fakes, found := range map[int]bool{16: true, maxSignatures - 1: true, maxSignatures: false} {
		w := newWorld(t)
		w.push(t, "m:1", PushOptions{Sign: private})
		w.forge(t, "m", "1", public, fakes)
		w.fakesFirst()
		_, err := w.pull(t, "m:1", PullOptions{Verify: trust.Require("test", public)})
		if found && err != nil {
			t.Errorf("%d fakes: %v", fakes, err)
		}
		if !found && (!errors.Is(err, trust.ErrSignature) || !strings.Contains(err.Error(), fmt.Sprintf("gave up after %d", maxSignatures))) {
			t.Errorf("%d fakes: %v", fakes, err)
		}
	}
}

// The version is signed. A changed annotation is refused, and so is an older version.
func TestVersions(t *testing.T) {
	public, private := newKey(t)
	w := newWorld(t)
	policy := trust.Require("test", public)
	policy.Minimum = map[string]uint64{w.host + "/m": 7}
	for version, fine := range map[uint64]bool{0: false, 6: false, 7: true, 8: true} {
		w.path, w.data = made(t, fmt.Sprint("gpu", version))
		w.push(t, "m:1", PushOptions{Sign: private, Version: version})
		w.cache = emptyCache(t)
		_, err := w.pull(t, "m:1", PullOptions{Verify: policy})
		if (err == nil) != fine || !fine && (!errors.Is(err, trust.ErrSignature) || !strings.Contains(err.Error(), fmt.Sprintf("version %d", version))) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	// The annotation claims a newer version than the signed one.
	w.path, w.data = made(t, "gpu")
	w.push(t, "m:1", PushOptions{Sign: private, Version: 6})
	d := memregistry.Digest(w.Manifest("m", "1"))
	for _, s := range w.referrers(t, "m", d) {
		raised := strings.Replace(string(w.Manifest("m", s)), `"io.medusa.version":"6"`, `"io.medusa.version":"9"`, 1)
		w.PutManifest("m", "", typeManifest, []byte(raised))
	}
	w.cache = emptyCache(t)
	if _, err := w.pull(t, "m:1", PullOptions{Verify: policy}); !errors.Is(err, trust.ErrSignature) {
		t.Error(err)
	}
}

// referrers lists the digests of a manifest's referrers.
func (w *world) referrers(t *testing.T, repo, digest string) []string {
	t.Helper()
	rec := httptest.NewRecorder()
	w.Registry.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v2/"+repo+"/referrers/"+digest, nil))
	var out []string
	for _, d := range decode[ocispec.Index](t, rec.Body.Bytes()).Manifests {
		out = append(out, d.Digest.String())
	}
	if len(out) == 0 {
		t.Fatal("no referrers")
	}
	return out
}

// The cache keeps verified proofs, and a later pull without a key does not remove them.
func TestProofIsKept(t *testing.T) {
	public, private := newKey(t)
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{Sign: private, Version: 3})
	policy := trust.Require("test", public)
	for _, o := range []PullOptions{{}, {Verify: policy}, {}} {
		if _, err := w.pull(t, "m:1", o); err != nil {
			t.Fatal(err)
		}
		data, err := w.cache.Proofs(memregistry.Digest(w.data))
		if err != nil {
			t.Fatal(err)
		}
		proofs, err := trust.Decode(data)
		if err != nil || len(proofs) != 1 || proofs[0].Reference != w.host+"/m:1" || proofs[0].Pulled.IsZero() {
			t.Fatalf("%+v %v", proofs, err)
		}
		s := trust.Subject{Digest: memregistry.Digest(w.data), Proofs: proofs}
		if warning, err := (&trust.Policy{}).Judge(s); err != nil || (warning == "") != (len(proofs[0].Signatures) == 1) {
			t.Error(warning, err)
		}
		if _, err := policy.Judge(s); (err == nil) != (len(proofs[0].Signatures) == 1) {
			t.Error(err)
		}
	}
	data, _ := w.cache.Proofs(memregistry.Digest(w.data))
	proofs, err := trust.Decode(data)
	if err != nil || len(proofs[0].Signatures) != 1 || proofs[0].Signatures[0].Version != 3 || proofs[0].Signatures[0].Verified.IsZero() {
		t.Errorf("%+v %v", proofs, err)
	}
}

// A planted file in the cache under the right name is not used without a signature.
func TestPlantedInTheCache(t *testing.T) {
	public, private := newKey(t)
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{Sign: private})
	_, planted := made(t, "evil")
	if err := os.WriteFile(filepath.Join(w.cache.Dir(), strings.TrimPrefix(memregistry.Digest(w.data), "sha256:")+artifacts.Suffix), planted, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := w.pull(t, "m:1", PullOptions{Verify: trust.Require("test", public)}); err != nil || !bytes.Equal(got, w.data) {
		t.Errorf("%d bytes that nobody signed, %v", len(got), err)
	}
}
