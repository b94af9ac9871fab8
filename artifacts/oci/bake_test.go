package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"medusa/test/memregistry"
	"medusa/test/testmem"
)

// base puts an image of one layer into the registry.
func (w *world) base(mediaType, configType, layerType string) string {
	layer := []byte("a layer")
	config := []byte(`{"architecture":"amd64","os":"linux","variant":"v3","config":{"Env":["PATH=/bin","MEDUSA_ARTIFACT=/old"],"Cmd":["/serve"],"Healthcheck":{"Test":["NONE"]}},` +
		`"rootfs":{"type":"layers","diff_ids":["` + memregistry.Digest(layer) + `"]},"history":[{"created_by":"base"}],"moby.future":1}`)
	manifest := `{"schemaVersion":2,"mediaType":"` + mediaType + `","config":{"mediaType":"` + configType + `","digest":"` + w.PutBlob(config) + `","size":` + sizeOf(config) +
		`},"layers":[{"mediaType":"` + layerType + `","digest":"` + w.PutBlob(layer) + `","size":7}]}`
	return w.PutManifest("base", "1", mediaType, []byte(manifest))
}

func TestBake(t *testing.T) {
	for _, kinds := range [][3]string{
		{typeManifest, "application/vnd.oci.image.config.v1+json", typeLayer},
		{dockerImage, "application/vnd.docker.container.image.v1+json", dockerLayer},
	} {
		w := newWorld(t)
		base := w.base(kinds[0], kinds[1], kinds[2])
		digest, err := (&Client{}).Bake(context.Background(), BakeOptions{Base: w.host + "/base:1", Artifact: w.path, Target: w.host + "/out:1"})
		if err != nil {
			t.Fatal(err)
		}
		data := w.Manifest("out", "1")
		if memregistry.Digest(data) != digest {
			t.Errorf("digest %s", digest)
		}
		m := decode[ocispec.Manifest](t, data)
		if m.MediaType != kinds[0] || m.Config.MediaType != kinds[1] || len(m.Layers) != 2 || m.Layers[1].MediaType != kinds[2] {
			t.Fatalf("manifest %s", data)
		}
		if kinds[0] == typeManifest && m.Annotations[annotationBaseSum] != base {
			t.Errorf("annotations %v", m.Annotations)
		}
		checkConfig(t, w.Blob(m.Config.Digest.String()), m.Layers[1].Digest.String(), identityOf(t, w.path).Digest())
		checkLayer(t, w.Blob(m.Layers[1].Digest.String()), w.data)
	}
}

func checkConfig(t *testing.T, data []byte, layer, identity string) {
	t.Helper()
	c := decode[struct {
		Architecture, Variant string
		Config                struct {
			Env, Cmd    []string
			Labels      map[string]string
			Healthcheck json.RawMessage
		}
		Rootfs struct {
			Type    string
			DiffIDs []string `json:"diff_ids"`
		}
		History []json.RawMessage
		Future  int `json:"moby.future"`
	}](t, data)
	if !slices.Equal(c.Config.Env, []string{"PATH=/bin", "MEDUSA_ARTIFACT=" + bakedPath}) || c.Config.Labels[annotationIdentity] != identity {
		t.Errorf("environment %v, labels %v", c.Config.Env, c.Config.Labels)
	}
	if len(c.Rootfs.DiffIDs) != 2 || c.Rootfs.DiffIDs[1] != layer || c.Rootfs.Type != "layers" || len(c.History) != 2 {
		t.Errorf("layers %v, history %d", c.Rootfs, len(c.History))
	}
	if c.Architecture != "amd64" || c.Variant != "v3" || c.Future != 1 || string(c.Config.Healthcheck) != `{"Test":["NONE"]}` || c.Config.Cmd[0] != "/serve" {
		t.Errorf("the base's own settings: %s", data)
	}
}

func checkLayer(t *testing.T, data, artifact []byte) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(data))
	h, err := r.Next()
	if err != nil || "/"+h.Name != bakedPath || h.Mode != 0o644 || h.Uid != 0 || h.ModTime.Unix() > 0 {
		t.Fatalf("%+v %v", h, err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, artifact) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if h, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("then %v %v", h, err)
	}
	if len(data)%512 != 0 {
		t.Errorf("%d bytes are no blocks", len(data))
	}
}

func TestBakeForOnePlatform(t *testing.T) {
	w := newWorld(t)
	d := w.base(typeManifest, "application/vnd.oci.image.config.v1+json", typeLayer)
	entry := `{"mediaType":"` + typeManifest + `","digest":"` + d + `","size":` + sizeOf(w.Manifest("base", d)) + `,"platform":{"os":"linux","architecture":"`
	w.PutManifest("base", "all", typeIndex, []byte(`{"schemaVersion":2,"mediaType":"`+typeIndex+`","manifests":[`+entry+`arm64"}},`+entry+`s390x"}}]}`))
	o := BakeOptions{Base: w.host + "/base:all", Artifact: w.path, Target: w.host + "/out:1", Platform: "linux/s390x"}
	if _, err := (&Client{}).Bake(context.Background(), o); err != nil {
		t.Error(err)
	}
	o.Platform = "linux/riscv64"
	if _, err := (&Client{}).Bake(context.Background(), o); err == nil || !strings.Contains(err.Error(), "only for linux/arm64, linux/s390x") {
		t.Error(err)
	}
}

func TestBakeRefuses(t *testing.T) {
	w := newWorld(t)
	w.push(t, "m:1", PushOptions{})
	for _, row := range []struct{ base, target, want string }{
		{"m:1", "out:1", "diff_ids"}, {"none:1", "out:1", "not found"}, {"m:1", "out@" + memregistry.Digest(nil), "needs a tag"},
	} {
		_, err := (&Client{}).Bake(context.Background(), BakeOptions{Base: w.host + "/" + row.base, Artifact: w.path, Target: w.host + "/" + row.target})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.base, err, row.want)
		}
	}
}

// The last layer can be read at any offset, because uploads may restart.
func TestLayerReadAt(t *testing.T) {
	w := newWorld(t)
	l, err := openLayer(w.path, typeLayer)
	if err != nil {
		t.Fatal(err)
	}
	defer l.file.Close()
	whole, err := io.ReadAll(io.NewSectionReader(l, 0, l.length()))
	if err != nil || int64(len(whole)) != l.descriptor.Size {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	for _, at := range []int{0, 1, 511, 512, 513, 1000, len(w.data), len(w.data) + 511, len(w.data) + 512, len(whole) - 1} {
		for _, n := range []int{1, 600, len(whole) - at} {
			p := make([]byte, n)
			k, err := l.ReadAt(p, int64(at))
			if want := whole[at:min(len(whole), at+n)]; !bytes.Equal(p[:k], want) || (k < n) != errors.Is(err, io.EOF) {
				t.Errorf("%d bytes at %d: %d, %v", n, at, k, err)
			}
		}
	}
}

// FuzzManifests: no manifest, index or base image makes the readers panic, and results that they accept can be used.
func FuzzManifests(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"artifactType":"` + typeArtifact + `","config":{"digest":"` + memregistry.Digest(nil) + `","size":1},"layers":[{"mediaType":"` + typeFile + `","digest":"` + memregistry.Digest(nil) + `","size":3}]}`))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"` + memregistry.Digest(nil) + `","size":1,"artifactType":"` + typeArtifact + `","annotations":{"io.medusa.factor.gpu.name":"H200"},"platform":{"os":"linux","architecture":"amd64"}}]}`))
	f.Add([]byte(`{"config":{"Env":["A=b"],"Labels":{"a":"b"}},"rootfs":{"type":"layers","diff_ids":["` + memregistry.Digest(nil) + `"]},"history":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		testmem.Bounded(t, len(data), func() { readManifests(t, data) })
	})
}

func readManifests(t *testing.T, data []byte) {
	for _, kind := range [][2]string{{typeArtifact, typeFile}, {typeSignature, typeEd25519}} {
		m, err := parseManifest(data, kind[0], kind[1])
		if (m == nil) == (err == nil) || err != nil && !errors.Is(err, errNotArtifact) {
			t.Fatalf("%v %v", m, err)
		}
	}
	index, err := parseIndex(data)
	if (index == nil) == (err == nil) || err != nil && !errors.Is(err, errNotArtifact) {
		t.Fatalf("%v %v", index, err)
	}
	if err == nil {
		if d, err := choose(index, nil); err == nil && checkDescriptor(d) != nil {
			t.Fatalf("chose %+v", d)
		}
		_, _ = choosePlatform(index, "linux/amd64")
		out, err := withEntry(index, ocispec.Descriptor{MediaType: "x", Digest: "sha256:" + ocispec.DescriptorEmptyJSON.Digest[7:], ArtifactType: typeArtifact})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseIndex(out); err != nil {
			t.Fatal(err)
		}
	}
	for _, layers := range []int{0, 1, 2} {
		i := &image{mediaType: typeManifest, layers: make([]ocispec.Descriptor, layers)}
		if json.Unmarshal(data, &i.config) != nil || json.Unmarshal(data, &i.manifest) != nil || i.config == nil {
			continue
		}
		config, manifest, err := i.with([]addition{{descriptor: describe(typeLayer, nil)}}, "sha256:x", "base")
		if err == nil && (!json.Valid(config) || !json.Valid(manifest)) {
			t.Fatalf("%s %s", config, manifest)
		}
	}
}
