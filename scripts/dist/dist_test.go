package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// trees writes the trees of both platforms, made from this test's own binary with another machine in its ELF header.
func trees(t *testing.T) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// An ELF file without program and section headers: type EXEC, version 1.
	static := make([]byte, 64)
	copy(static, self[:20])
	static[20], static[52], static[54], static[58] = 1, 64, 56, 64
	dir := t.TempDir()
	for arch, machine := range map[string]byte{"amd64": 0x3e, "arm64": 0xb7} {
		static[18] = machine
		for _, name := range installed {
			path := filepath.Join(dir, "linux-"+arch, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".so") { // needs a table of symbols
				continue
			}
			if err := os.WriteFile(path, static, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("license"), 0o644); err != nil {
		t.Fatal(err)
	}
	licenses := filepath.Join(dir, "licenses", "std")
	if err := os.MkdirAll(licenses, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(licenses, "LICENSE"), []byte("of Go"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExamine(t *testing.T) {
	dir := trees(t)
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	arm := []file{{"medusa", read("linux-arm64/medusa"), 0o755}}
	if _, err := examine(arm, "arm64"); err != nil {
		t.Errorf("arm64: %v", err)
	}
	if _, err := examine(arm, "amd64"); err == nil || !strings.Contains(err.Error(), "EM_AARCH64") {
		t.Errorf("an arm64 binary in amd64's tree: %v", err)
	}
	if _, err := examine([]file{{"medusa", []byte("text"), 0o755}}, "amd64"); err == nil {
		t.Error("a text is taken for a binary")
	}
	if _, err := tree(filepath.Join(dir, "linux-amd64"), filepath.Join(dir, "licenses"), "LICENSE"); err == nil {
		t.Error("a tree without the interposer is packed")
	}
	if !later("2.34", "2.5") || later("2.2.5", "2.34") || later("2.34", "2.34") {
		t.Error("versions are compared as texts")
	}
}

func TestPlugins(t *testing.T) {
	tree := fstest.MapFS{"lib/python/medusa_graphs/a.py": {Data: []byte("a")}, "lib/x.so": {}}
	got, err := filesBelow(tree, plugins)
	if err != nil || len(got) != 1 || got[0].name != "lib/python/medusa_graphs/a.py" || got[0].mode != 0o644 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := filesBelow(fstest.MapFS{"lib/x.so": {}}, plugins); err == nil {
		t.Error("a tree without plug-ins is packed")
	}
}

func TestArchiveIsReproducible(t *testing.T) {
	files := []file{{"LICENSE", []byte("l"), 0o644}, {"lib/x.so", []byte("so"), 0o755}}
	a, err := pack(files, "p/")
	if err != nil {
		t.Fatal(err)
	}
	b, err := pack(files, "p/")
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("two archives of the same tree differ (%v)", err)
	}
	if got := names(t, a); !slices.Equal(got, []string{"p/ 755", "p/LICENSE 644", "p/lib/ 755", "p/lib/x.so 755"}) {
		t.Errorf("archive has %v", got)
	}
}

func names(t *testing.T, packed []byte) []string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 || h.Uname != "" || h.Uid != 0 {
			t.Errorf("%s tells who made it and when", h.Name)
		}
		out = append(out, h.Name+" "+map[int64]string{0o755: "755", 0o644: "644"}[h.Mode])
	}
}

// Every descriptor matches the digest and size of a blob, and the images match their index.
func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "image")
	files := []file{{"medusa", []byte("binary"), 0o755}}
	top, err := writeLayout(dir, "v1", []platform{{"amd64", files}, {"arm64", files}})
	if err != nil {
		t.Fatal(err)
	}
	read := func(d descriptor, into any) []byte {
		data, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(d.Digest, "sha256:")))
		if err != nil {
			t.Fatal(err)
		}
		if digest(data) != d.Digest || len(data) != d.Size {
			t.Errorf("blob %s is another, or has %d bytes", d.Digest, len(data))
		}
		if into != nil {
			if err := json.Unmarshal(data, into); err != nil {
				t.Fatal(err)
			}
		}
		return data
	}
	var outer, inner index
	if err := json.Unmarshal(top, &outer); err != nil {
		t.Fatal(err)
	}
	read(outer.Manifests[0], &inner)
	if outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1" || len(inner.Manifests) != 2 {
		t.Errorf("index %+v of %+v", inner, outer)
	}
	for _, m := range inner.Manifests {
		var image manifest
		var c config
		read(m, &image)
		read(image.Config, &c)
		packed := read(image.Layers[0], nil)
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if c.Architecture != m.Platform.Architecture || c.RootFS.DiffIDs[0] != digest(plain) {
			t.Errorf("image for %s: %+v", m.Platform.Architecture, c)
		}
		if got := names(t, packed); got[len(got)-1] != strings.TrimPrefix(c.Config.Entrypoint[0], "/")+" 755" {
			t.Errorf("entry point %v is not among %v", c.Config.Entrypoint, got)
		}
	}
}
