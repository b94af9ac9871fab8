package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"medusa/test/memregistry"
	"medusa/test/testenv"
)

// archive has one file.
func archive(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packed writes through a compressor.
func packed(t *testing.T, data []byte, w io.WriteCloser, out *bytes.Buffer) []byte {
	t.Helper()
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// pythonImage puts an image into the registry whose layers have a source each: plain, gzip and zstd.
func (w *world) pythonImage(t *testing.T, site string, kinds [3]string) {
	t.Helper()
	var z, g bytes.Buffer
	zw, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	all := [][]byte{archive(t, site+"a.py", "1\n"), packed(t, archive(t, site+"b.py", "2\n"), gzip.NewWriter(&g), &g), packed(t, archive(t, site+"c.py", "3\n"), zw, &z)}
	var layers, ids []string
	for i, data := range all {
		layers = append(layers, `{"mediaType":"`+kinds[2]+[]string{"", "+gzip", "+zstd"}[i]+`","digest":"`+w.PutBlob(data)+`","size":`+sizeOf(data)+`}`)
		ids = append(ids, `"`+memregistry.Digest([]byte{byte(i)})+`"`)
	}
	config := []byte(`{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[` + strings.Join(ids, ",") + `]}}`)
	w.PutManifest("base", "1", kinds[0], []byte(`{"schemaVersion":2,"mediaType":"`+kinds[0]+`","config":{"mediaType":"`+kinds[1]+`","digest":"`+w.PutBlob(config)+`","size":`+sizeOf(config)+
		`},"layers":[`+strings.Join(layers, ",")+`]}`))
}

// The layer with the bytecode lies between the image's layers and the artifact's. Its two digests are those of its bytes, compressed and not.
func TestPrecompile(t *testing.T) {
	python, version := testenv.Interpreter(t)
	tag := strings.ReplaceAll(version, ".", "")
	site := "usr/lib/python" + version + "/site-packages/"
	for _, kinds := range [][3]string{
		{typeManifest, "application/vnd.oci.image.config.v1+json", typeLayer},
		{dockerImage, "application/vnd.docker.container.image.v1+json", dockerLayer},
	} {
		w := newWorld(t)
		w.pythonImage(t, site, kinds)
		o := BakeOptions{Base: w.host + "/base:1", Artifact: w.path, Target: w.host + "/out:1", Python: python}
		if _, err := (&Client{}).Bake(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		m := decode[ocispec.Manifest](t, w.Manifest("out", "1"))
		if len(m.Layers) != 5 || m.Layers[3].MediaType != map[string]string{typeLayer: typeLayer + "+gzip", dockerLayer: dockerLayer + ".gzip"}[kinds[2]] {
			t.Fatalf("%+v", m.Layers)
		}
		checkLayer(t, w.Blob(m.Layers[4].Digest.String()), w.data)
		data := w.Blob(m.Layers[3].Digest.String())
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil || memregistry.Digest(data) != m.Layers[3].Digest.String() || int64(len(data)) != m.Layers[3].Size {
			t.Fatal(m.Layers[3], err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		c := decode[struct {
			Rootfs  struct{ Diff_IDs []string }
			History []json.RawMessage
		}](t, w.Blob(m.Config.Digest.String()))
		if ids := c.Rootfs.Diff_IDs; len(ids) != 5 || ids[3] != memregistry.Digest(plain) || ids[4] != m.Layers[4].Digest.String() || len(c.History) != 2 {
			t.Errorf("%+v", c)
		}
		var names []string
		r := tar.NewReader(bytes.NewReader(plain))
		for h, err := r.Next(); err == nil; h, err = r.Next() {
			names = append(names, h.Name)
		}
		if got := strings.ReplaceAll(strings.Join(names, " "), site+"__pycache__/", ""); got != strings.ReplaceAll("a.cpython-X.pyc b.cpython-X.pyc c.cpython-X.pyc", "X", tag) {
			t.Error(got)
		}
	}
}

// No image is pushed if a layer of the base does not match its digest, or if the interpreter is of no use.
func TestPrecompileRefuses(t *testing.T) {
	python, _ := testenv.Interpreter(t)
	w := newWorld(t)
	w.base(typeManifest, "application/vnd.oci.image.config.v1+json", typeLayer)
	o := BakeOptions{Base: w.host + "/base:1", Artifact: w.path, Target: w.host + "/out:1", Python: "/none/python3"}
	if _, err := (&Client{}).Bake(context.Background(), o); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	o.Python = python
	if _, err := (&Client{}).Bake(context.Background(), o); err == nil || !strings.Contains(err.Error(), "read layer sha256:") {
		t.Error(err)
	}
	plain := archive(t, "lib/a.py", "1\n")
	w.pythonImage(t, "lib/", [3]string{typeManifest, "application/vnd.oci.image.config.v1+json", typeLayer})
	w.misbehave = func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, memregistry.Digest(plain)) {
			return false
		}
		rw.Header().Set("Content-Length", strconv.Itoa(len(plain)))
		_, _ = rw.Write(bytes.Replace(plain, []byte("1\n"), []byte("2\n"), 1))
		return true
	}
	if _, err := (&Client{}).Bake(context.Background(), o); err == nil || !strings.Contains(err.Error(), "do not match its digest") {
		t.Error(err)
	}
	w.misbehave = nil
	w.pythonImage(t, "usr/lib/python3.1/", [3]string{typeManifest, "application/vnd.oci.image.config.v1+json", typeLayer})
	if _, err := (&Client{}).Bake(context.Background(), o); err == nil || !strings.Contains(err.Error(), "has packages for [3.1]") {
		t.Error(err)
	}
	if data := w.Manifest("out", "1"); data != nil {
		t.Errorf("%s was pushed", data)
	}
}
