package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The parts of the OCI image specification that an image without a history needs. Package artifacts/oci uses a library for
// registries, but a layout is only four kinds of JSON files.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *ociPlatform      `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	ociPlatform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	config struct {
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       runConfig `json:"config"`
		RootFS       rootFS    `json:"rootfs"`
	}
	runConfig struct {
		User       string
		Env        []string
		Entrypoint []string
		Labels     map[string]string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
)

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// home is Medusa's folder in the image. It is not /opt/medusa, which is for baked artifacts and installed copies.
const home = "usr/local/medusa/"

// nobody is the user of the image. It reads the image's files and writes none.
const nobody = "65534:65534"

type platform struct {
	arch  string
	files []file
}

// layout writes blobs and keeps the first error.
type layout struct {
	dir string
	err error
}

// writeLayout writes an image for all platforms and returns the bytes of index.json.
func writeLayout(dir, version string, platforms []platform) ([]byte, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return nil, err
	}
	l := &layout{dir: dir}
	images := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, p := range platforms {
		plain, err := archive(p.files, home)
		if err != nil {
			return nil, err
		}
		packed, err := compress(plain)
		if err != nil {
			return nil, err
		}
		c := config{Architecture: p.arch, OS: "linux", RootFS: rootFS{"layers", []string{digest(plain)}}, Config: runConfig{
			User: nobody, Env: []string{"PATH=/" + home + ":/usr/local/bin:/usr/bin:/bin"}, Entrypoint: []string{"/" + home + "medusa"},
			Labels: map[string]string{"org.opencontainers.image.title": "medusa", "org.opencontainers.image.version": version},
		}}
		d := l.object(typeManifest, manifest{2, typeManifest, l.object(typeConfig, c), []descriptor{l.blob(typeLayer, packed)}})
		d.Platform = &ociPlatform{p.arch, "linux"}
		images.Manifests = append(images.Manifests, d)
	}
	d := l.object(typeIndex, images)
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": version}
	top := l.marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{d}})
	l.write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	l.write("index.json", top)
	return top, l.err
}

func (l *layout) object(mediaType string, v any) descriptor { return l.blob(mediaType, l.marshal(v)) }

func (l *layout) blob(mediaType string, data []byte) descriptor {
	l.write(filepath.Join("blobs", "sha256", digest(data)[len("sha256:"):]), data)
	return descriptor{MediaType: mediaType, Digest: digest(data), Size: len(data)}
}

func (l *layout) marshal(v any) []byte {
	data, err := json.Marshal(v)
	if l.err == nil {
		l.err = err
	}
	return data
}

func (l *layout) write(name string, data []byte) {
	if l.err == nil {
		l.err = os.WriteFile(filepath.Join(l.dir, name), data, 0o644)
	}
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
