// Package memregistry is an OCI registry in memory, for tests: as much of the distribution specification as pushing, pulling,
// mounting and listing referrers need. Wrap its handler to make it misbehave.
//
// In: HTTP requests below /v2/. Out: the pushed blobs and manifests. Fails: a request that the specification forbids gets the
// specification's error; other unknown requests get status 404 or 405.
package memregistry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Registry holds blobs and manifests of all repositories. The zero value is empty and ready.
type Registry struct {
	// Referrers switches the referrers API on; without it clients fall back to tags.
	Referrers bool

	mu        sync.Mutex
	blobs     map[string][]byte   // by digest; whether a repository has one is not kept apart
	manifests map[string]manifest // by repository@digest
	tags      map[string]string   // digest by repository:tag
	uploads   int
	mounts    int
}

type manifest struct {
	mediaType string
	data      []byte
}

// Digest returns the digest of data.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PutBlob stores a blob.
func (r *Registry) PutBlob(data []byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blobs == nil {
		r.blobs = map[string][]byte{}
	}
	d := Digest(data)
	r.blobs[d] = data
	return d
}

// Blob returns a blob, or nil.
func (r *Registry) Blob(digest string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blobs[digest]
}

// PutManifest stores a manifest under its digest and, unless it is empty, a tag.
func (r *Registry) PutManifest(repo, tag, mediaType string, data []byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.manifests == nil {
		r.manifests, r.tags = map[string]manifest{}, map[string]string{}
	}
	d := Digest(data)
	r.manifests[repo+"@"+d] = manifest{mediaType, data}
	if tag != "" {
		r.tags[repo+":"+tag] = d
	}
	return d
}

// Manifest returns the manifest that a tag or a digest names, or nil.
func (r *Registry) Manifest(repo, ref string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, m := r.find(repo, ref)
	return m.data
}

// Mounts returns how many blobs were taken over from another repository.
func (r *Registry) Mounts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mounts
}

// Referring returns the manifests whose subject is the digest.
func (r *Registry) Referring(repo, digest string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found [][]byte
	for name, m := range r.manifests {
		var of struct{ Subject *struct{ Digest string } }
		if strings.HasPrefix(name, repo+"@") && json.Unmarshal(m.data, &of) == nil && of.Subject != nil && of.Subject.Digest == digest {
			found = append(found, m.data)
		}
	}
	return found
}

func (r *Registry) find(repo, ref string) (string, manifest) {
	if !strings.HasPrefix(ref, "sha256:") {
		ref = r.tags[repo+":"+ref]
	}
	return ref, r.manifests[repo+"@"+ref]
}

var route = regexp.MustCompile(`^/v2/(.+)/(blobs/uploads|blobs|manifests|referrers)/([^/]*)$`)

// ServeHTTP answers as a registry.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	parts := route.FindStringSubmatch(req.URL.Path)
	if parts == nil {
		w.WriteHeader(map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[req.URL.Path == "/v2/"])
		return
	}
	repo, kind, ref := parts[1], parts[2], parts[3]
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch {
	case kind == "blobs" && read:
		r.getBlob(w, req, ref)
	case kind == "blobs/uploads":
		r.upload(w, req, repo)
	case kind == "manifests" && read:
		r.getManifest(w, req, repo, ref)
	case kind == "manifests" && req.Method == http.MethodPut:
		r.putManifest(w, req, repo, ref)
	case kind == "referrers" && r.Referrers:
		r.getReferrers(w, req, repo, ref)
	case kind == "referrers":
		fail(w, http.StatusNotFound, "UNSUPPORTED")
	default:
		fail(w, http.StatusMethodNotAllowed, "UNSUPPORTED")
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"as the test wants it"}]}`, code)
}

func (r *Registry) getBlob(w http.ResponseWriter, req *http.Request, digest string) {
	data := r.Blob(digest)
	if data == nil {
		fail(w, http.StatusNotFound, "BLOB_UNKNOWN")
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(data))
}

func (r *Registry) upload(w http.ResponseWriter, req *http.Request, repo string) {
	digest := req.URL.Query().Get("digest")
	if req.Method == http.MethodPost {
		if mount := req.URL.Query().Get("mount"); mount != "" && r.Blob(mount) != nil {
			r.mu.Lock()
			r.mounts++
			r.mu.Unlock()
			w.Header().Set("Location", "/v2/"+repo+"/blobs/"+mount)
			w.Header().Set("Docker-Content-Digest", mount)
			w.WriteHeader(http.StatusCreated)
			return
		}
		r.mu.Lock()
		r.uploads++
		w.Header().Set("Location", fmt.Sprintf("/v2/%s/blobs/uploads/%d", repo, r.uploads))
		r.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	data, err := io.ReadAll(req.Body)
	if err != nil || req.Method != http.MethodPut || Digest(data) != digest {
		fail(w, http.StatusBadRequest, "DIGEST_INVALID")
		return
	}
	r.PutBlob(data)
	w.Header().Set("Docker-Content-Digest", digest)
	w.WriteHeader(http.StatusCreated)
}

func (r *Registry) getManifest(w http.ResponseWriter, req *http.Request, repo, ref string) {
	r.mu.Lock()
	digest, m := r.find(repo, ref)
	r.mu.Unlock()
	if m.data == nil {
		fail(w, http.StatusNotFound, "MANIFEST_UNKNOWN")
		return
	}
	w.Header().Set("Content-Type", m.mediaType)
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", fmt.Sprint(len(m.data)))
	if req.Method == http.MethodGet {
		_, _ = w.Write(m.data)
	}
}

func (r *Registry) putManifest(w http.ResponseWriter, req *http.Request, repo, ref string) {
	data, err := io.ReadAll(req.Body)
	var m struct {
		Config  *struct{ Digest string }
		Layers  []struct{ Digest string }
		Subject *struct{ Digest string }
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil || strings.HasPrefix(ref, "sha256:") && Digest(data) != ref {
		fail(w, http.StatusBadRequest, "MANIFEST_INVALID")
		return
	}
	for _, l := range m.Layers {
		if r.Blob(l.Digest) == nil {
			fail(w, http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN")
			return
		}
	}
	if m.Config != nil && r.Blob(m.Config.Digest) == nil {
		fail(w, http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN")
		return
	}
	tag := ref
	if strings.HasPrefix(ref, "sha256:") {
		tag = ""
	}
	if m.Subject != nil && r.Referrers {
		w.Header().Set("OCI-Subject", m.Subject.Digest)
	}
	w.Header().Set("Docker-Content-Digest", r.PutManifest(repo, tag, req.Header.Get("Content-Type"), data))
	w.WriteHeader(http.StatusCreated)
}

func (r *Registry) getReferrers(w http.ResponseWriter, req *http.Request, repo, subject string) {
	type descriptor struct {
		MediaType    string            `json:"mediaType"`
		Digest       string            `json:"digest"`
		Size         int               `json:"size"`
		ArtifactType string            `json:"artifactType"`
		Annotations  map[string]string `json:"annotations"`
	}
	found := []descriptor{}
	r.mu.Lock()
	for name, stored := range r.manifests {
		var m struct {
			ArtifactType string
			Subject      *struct{ Digest string }
			Annotations  map[string]string
		}
		if json.Unmarshal(stored.data, &m) == nil && m.Subject != nil && m.Subject.Digest == subject && strings.HasPrefix(name, repo+"@") {
			found = append(found, descriptor{stored.mediaType, Digest(stored.data), len(stored.data), m.ArtifactType, m.Annotations})
		}
	}
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": found})
}
