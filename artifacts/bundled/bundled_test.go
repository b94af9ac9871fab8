package bundled

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"medusa/artifacts"
	"medusa/test/testmem"
)

// tree writes files by path. A path that ends in "/" is a directory. A content that ends in "!" makes the file executable.
func tree(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		mode := os.FileMode(0o600)
		if strings.HasSuffix(content, "!") {
			mode = 0o700
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// look is the inverse of tree.
func look(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == dir || strings.HasPrefix(e.Name(), own+"layer-") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			out[name+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		out[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t testing.TB, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d entries %v, want %d %v", len(got), got, len(want), want)
	}
	for name, content := range want {
		if g, there := got[name]; !there || g != content {
			t.Errorf("%s is %q (%v), want %q", name, g, there, content)
		}
	}
}

func packed(t testing.TB, dir string) (artifacts.Directory, []byte) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "x.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	l, err := Pack("x", dir, out, func(path string) { t.Errorf("%s is left out", path) })
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(data)) != l.PackedSize || sha256.Sum256(data) != l.SHA256 {
		t.Fatalf("layer %+v of %d bytes", l, len(data))
	}
	return l, data
}

var cache = map[string]string{
	"a/": "", "a/kernel.cubin": strings.Repeat("code", 5000), "a.txt": "", "bin/": "", "bin/tool": "#!run!", "empty/": "", "z": "1",
}

func TestRoundTrip(t *testing.T) {
	l, data := packed(t, tree(t, t.TempDir(), cache))
	if l.Files != 7 || l.Size != 20007 {
		t.Errorf("%d bytes in %d entries", l.Size, l.Files)
	}
	dest := filepath.Join(t.TempDir(), "deep", "er", "cache")
	p, err := place(bytes.NewReader(data), &l, dest, own+"layer-1")
	if err != nil || p.New != 7 {
		t.Fatalf("%+v %v", p, err)
	}
	same(t, look(t, dest), cache)
	for name, want := range map[string]os.FileMode{"bin/tool": 0o755, "z": 0o644, "a": 0o755, "": 0o755} {
		if info, err := os.Stat(filepath.Join(dest, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dest), ".medusa-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPackIsDeterministic(t *testing.T) {
	dir := tree(t, t.TempDir(), cache)
	l1, _ := packed(t, dir)
	other := tree(t, t.TempDir(), cache)
	past := time.Unix(1e9, 0)
	if err := errors.Join(os.Chtimes(filepath.Join(other, "z"), past, past), os.Chmod(filepath.Join(other, "a.txt"), 0o644),
		os.WriteFile(filepath.Join(other, own+"layer-7"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if l2, _ := packed(t, other); l1.SHA256 != l2.SHA256 {
		t.Error("times, modes of users or Medusa's own files change the bytes")
	}
	if err := os.Chmod(filepath.Join(other, "z"), 0o755); err != nil {
		t.Fatal(err)
	}
	if l3, _ := packed(t, other); l1.SHA256 == l3.SHA256 {
		t.Error("a program packs like a file")
	}
}

func TestPackRefuses(t *testing.T) {
	dir := tree(t, t.TempDir(), cache)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := Pack("x", dir, out, nil); err == nil || !strings.Contains(err.Error(), "pipe is neither a file nor a directory") {
		t.Errorf("pipe: %v", err)
	}
	if _, err := Pack("x", filepath.Join(dir, "none"), out, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// Pack leaves out symbolic links, even those with a valid target, and reports each. The rest packs as if they did not
// exist.
func TestPackLeavesLinksOut(t *testing.T) {
	dir := tree(t, t.TempDir(), cache)
	want, _ := packed(t, dir)
	for link, to := range map[string]string{"link": "a.txt", "sub-link": dir, "dangling": "/nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var told []string
	got, err := Pack("x", dir, out, func(path string) { told = append(told, filepath.Base(path)) })
	if err != nil || got.SHA256 != want.SHA256 || got.Files != want.Files {
		t.Errorf("%+v, want %+v, %v", got, want, err)
	}
	if !slices.Equal(told, []string{"dangling", "link", "sub-link"}) {
		t.Errorf("told %q", told)
	}
}

// Existing files stay, even if the directory has other contents for them.
func TestMerge(t *testing.T) {
	l, data := packed(t, tree(t, t.TempDir(), cache))
	dest := tree(t, t.TempDir(), map[string]string{"a.txt": "mine", "z": "1", "own": "x", "bin/": ""})
	p, err := place(bytes.NewReader(data), &l, dest, own+"layer-1")
	if err != nil {
		t.Fatal(err)
	}
	if p.New != 4 || p.Equal != 2 || p.Different != 1 {
		t.Errorf("%+v", p)
	}
	want := map[string]string{"own": "x"}
	for name, content := range cache {
		want[name] = content
	}
	want["a.txt"] = "mine"
	same(t, look(t, dest), want)
}

// A symbolic link in the place does not lead the directory out of it.
func TestMergeStaysInside(t *testing.T) {
	l, data := packed(t, tree(t, t.TempDir(), cache))
	dest, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dest, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := place(bytes.NewReader(data), &l, dest, own+"layer-1"); err == nil {
		t.Error("no error")
	}
	same(t, look(t, outside), map[string]string{})
}

// archive builds archives that Pack would not write.
func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnsafeArchives(t *testing.T) {
	file := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 3, Mode: 0o644}
	}
	for name, data := range map[string][]byte{
		"parent":           archive(t, file("../x")),
		"parent in middle": archive(t, file("a/../../x")),
		"absolute":         archive(t, file("/etc/x")),
		"not clean":        archive(t, file("a//x")),
		"itself":           archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "./"}),
		"backslash":        archive(t, file(`..\x`)),
		"control":          archive(t, file("a\x1b[2J")),
		"long":             archive(t, file(strings.Repeat("x", maxName+1))),
		"long element":     archive(t, file(strings.Repeat("x", 256))),
		"deep":             archive(t, file(strings.Repeat("x/", maxDepth)+"x")),
		"symlink":          archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc"}),
		"hard link":        archive(t, tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "../../etc/passwd"}),
		"device":           archive(t, tar.Header{Typeflag: tar.TypeChar, Name: "a", Devmajor: 1}),
		"pipe":             archive(t, tar.Header{Typeflag: tar.TypeFifo, Name: "a"}),
		"twice":            archive(t, file("a"), file("a")),
		"below a file":     archive(t, file("a"), file("a/b")),
		"no directory":     archive(t, file("d/x")),
		"too large":        archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 101}),
		"too many":         archive(t, file("a"), file("b"), file("c"), file("d")),
		"too few":          archive(t, file("a")),
		"not compressed":   []byte("hello"),
		"empty":            nil,
		"truncated":        archive(t, file("a"), file("b"))[:40],
	} {
		parent := t.TempDir()
		dest := filepath.Join(parent, "dest")
		_, err := place(bytes.NewReader(data), &artifacts.Directory{Size: 100, Files: 3}, dest, own+"layer-1")
		if !errors.Is(err, ErrArchive) {
			t.Errorf("%s: %v", name, err)
		}
		same(t, look(t, parent), map[string]string{})
	}
}

// The declared sizes of an archive are bounded, and decompression stops at them.
func TestBounds(t *testing.T) {
	bomb := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 64 << 20})
	for _, l := range []artifacts.Directory{{Size: maxSize + 1, Files: 1}, {Size: 1, Files: maxFiles + 1}, {Size: 1000, Files: 1}} {
		if _, err := place(bytes.NewReader(bomb), &l, filepath.Join(t.TempDir(), "x"), own+"layer-1"); !errors.Is(err, ErrArchive) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// Leftovers of an interrupted start are removed; files of a running start stay.
func TestAbandonedStaging(t *testing.T) {
	parent := t.TempDir()
	running, finish, err := stage(parent, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer finish()
	abandoned := tree(t, filepath.Join(parent, own+"x-1"), map[string]string{"half": "made"})
	long := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(running, long, long), os.Chtimes(abandoned, long, long)); err != nil {
		t.Fatal(err)
	}
	_, done, err := stage(parent, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := os.Stat(running); err != nil {
		t.Errorf("running: %v", err)
	}
	if _, err := os.Stat(abandoned); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("abandoned: %v", err)
	}
}

// FuzzUnpack: no archive writes outside of its place, or more than it declares.
func FuzzUnpack(f *testing.F) {
	_, data := packed(f, tree(f, f.TempDir(), map[string]string{"a/": "", "a/b": "content", "c": ""}))
	f.Add(data, false)
	raw, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := raw.DecodeAll(data, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain, true)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	parent := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, compress bool) {
		if compress { // most mutations of a compressed frame do not reach the archive
			data = enc.EncodeAll(data, nil)
		}
		dir, err := os.MkdirTemp(parent, "") // calling f.TempDir for each input would be slow
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		testmem.Bounded(t, len(data), func() {
			_, err = place(bytes.NewReader(data), &artifacts.Directory{Size: 7, Files: 3}, filepath.Join(dir, "d"), own+"layer-1")
		})
		if err != nil && !errors.Is(err, ErrArchive) {
			t.Fatalf("untyped error %v", err)
		}
		entries, readErr := os.ReadDir(dir)
		if readErr != nil || err != nil && len(entries) != 0 || len(entries) > 1 {
			t.Fatalf("left %v after %v", entries, err)
		}
	})
}
