package bytecode

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/test/testenv"
)

// stamp is the time of all sources: not a whole second, as build tools leave them.
var stamp = time.Unix(1_700_000_000, 500_000_000)

// layer is an archive of files, with their contents. A name that ends in / is a folder, a content that begins with = a link.
func layer(t *testing.T, files ...[2]string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f[0], Mode: 0o644, ModTime: stamp, Format: tar.FormatPAX, Typeflag: tar.TypeReg, Size: int64(len(f[1]))}
		if to, ok := strings.CutPrefix(f[1], "="); ok {
			h.Typeflag, h.Linkname, h.Size, f[1] = tar.TypeLink, to, 0, ""
		} else if strings.HasSuffix(f[0], "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// made adds the layers and returns the one that was made.
func made(t *testing.T, python string, layers ...*bytes.Buffer) (*bytes.Buffer, Counts, error) {
	t.Helper()
	m, err := New(context.Background(), python)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, l := range layers {
		if err := m.Add(bytes.NewReader(l.Bytes())); err != nil {
			return nil, Counts{}, err
		}
	}
	var out bytes.Buffer
	counts, err := m.Make(context.Background(), &out)
	return &out, counts, err
}

// names lists the files of a layer.
func names(t *testing.T, l *bytes.Buffer) (all []string) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(l.Bytes())); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h.Name)
	}
}

// unpackAll writes the contents of layers below a folder, as a runtime of containers does.
func unpackAll(t *testing.T, folder string, layers ...*bytes.Buffer) {
	t.Helper()
	for _, l := range layers {
		for r := tar.NewReader(bytes.NewReader(l.Bytes())); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if strings.HasSuffix(h.Name, "/") {
				continue
			}
			name := filepath.Join(folder, h.Name)
			data, readErr := io.ReadAll(r)
			if err := errors.Join(err, readErr, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644), os.Chtimes(name, h.ModTime, h.ModTime)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// imported imports modules from a folder and returns what program prints.
func imported(t *testing.T, python, folder, program string) string {
	t.Helper()
	cmd := exec.Command(python, "-c", program)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

// The image's interpreter takes the bytecode: it compiles none of these modules. Tracebacks name the files of the image.
func TestBytecodeIsUsed(t *testing.T) {
	python, version := testenv.Interpreter(t)
	folder := "opt/venv/lib/python" + version + "/site-packages/"
	image := layer(t, [2]string{folder, ""}, [2]string{folder + "a.py", "value = 1\n"}, [2]string{folder + "p/__init__.py", "value = 2\n"}, [2]string{folder + "old.py", "print 'two'\n"})
	out, counts, err := made(t, python, image)
	if err != nil || counts != (Counts{3, 2}) {
		t.Fatalf("%+v, %v", counts, err)
	}
	root := t.TempDir()
	unpackAll(t, root, image, out)
	program := `
import importlib._bootstrap_external as external
external._compile_bytecode, real = lambda *args, **named: taken.append(1) or real(*args, **named), external._compile_bytecode
taken = []
import a, p, marshal
print(len(taken), a.value, p.value, marshal.loads(open(a.__cached__, 'rb').read()[16:]).co_filename)`
	if got, want := imported(t, python, filepath.Join(root, folder), program), "2 1 2 /"+folder+"a.py\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Where times do not tell, old bytecode never runs: that of a source which is exchanged for another of the same time and length after the image was
// made, and that which the image has of an earlier source.
func TestOldBytecodeDoesNotRun(t *testing.T) {
	python, version := testenv.Interpreter(t)
	folder := "opt/venv/lib/python" + version + "/site-packages/"
	first := layer(t, [2]string{folder + "a.py", "value = 1\n"}, [2]string{folder + "b.py", "value = 2\n"})
	patched := layer(t, [2]string{folder + "a.py", "value = 7\n"})
	root := t.TempDir()
	unpackAll(t, root, first)
	if out, err := exec.Command(python, "-m", "compileall", "-q", "-s", root, "-p", "/", filepath.Join(root, folder)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var own [][2]string // bytecode by times, as pip leaves it
	for _, name := range []string{"a.py", "b.py"} {
		data, err := os.ReadFile(filepath.Join(root, compiled(folder+name, version)))
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, [2]string{compiled(folder+name, version), string(data)})
	}
	ours, _, err := made(t, python, first)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		baked, later []*bytes.Buffer
		compiled     int
	}{
		"patched after baking":        {[]*bytes.Buffer{first}, []*bytes.Buffer{patched}, 2},
		"baked again":                 {[]*bytes.Buffer{first, ours, patched}, nil, 1},
		"patched over pip's own":      {[]*bytes.Buffer{first, layer(t, own...), patched}, nil, 1},
		"pip's own, of these sources": {[]*bytes.Buffer{first, patched, layer(t, own[1])}, nil, 1},
	} {
		out, counts, err := made(t, python, row.baked...)
		if err != nil || counts.Compiled != row.compiled {
			t.Errorf("%s: %+v, %v", name, counts, err)
		}
		root := t.TempDir()
		unpackAll(t, root, append(append(row.baked, out), row.later...)...)
		got := imported(t, python, filepath.Join(root, folder), "import a, b; print(a.value, b.value)")
		if got != "7 2\n" {
			t.Errorf("%s: %s, want the patched value", name, got)
		}
	}
}

// Later layers hide files of earlier ones, and bytecode that the image has is not made again.
func TestLayers(t *testing.T) {
	python, version := testenv.Interpreter(t)
	site := "usr/lib/python" + version + "/dist-packages/"
	first := layer(t, [2]string{site + "kept.py", "1\n"}, [2]string{site + "gone.py", "2\n"}, [2]string{site + "all/x.py", "3\n"}, [2]string{site + "kept/y.py", "4\n"},
		[2]string{"root/cache/z.py", "5\n"}, [2]string{site + "changed.py", "6\n"}, [2]string{site + "folder.py", "7\n"})
	second := layer(t, [2]string{site + ".wh.gone.py", ""}, [2]string{site + "all/.wh..wh..opq", ""}, [2]string{site + "all/new.py", "8\n"}, [2]string{site + "linked.py", "=root/cache/z.py"},
		[2]string{site + "elsewhere.py", "=root/cache/none.py"}, [2]string{site + "folder.py/", ""}, [2]string{site + "folder.py/in.py", "9\n"})
	out, counts, err := made(t, python, first, second)
	if err != nil || counts != (Counts{6, 6}) {
		t.Fatalf("%+v, %v", counts, err)
	}
	var want []string
	for _, name := range []string{"all/new", "changed", "folder.py/in", "kept/y", "kept", "linked"} {
		want = append(want, compiled(site+name+".py", version))
	}
	if got := names(t, out); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v", got, want)
	}
	third := layer(t, [2]string{site + "changed.py", "longer than before\n"})
	out, counts, err = made(t, python, first, second, out, third)
	if got := names(t, out); err != nil || counts != (Counts{6, 0}) || len(got) != 0 {
		t.Errorf("a source that does not compile: %+v, %v, %v", counts, got, err)
	}
	third = layer(t, [2]string{site + "kept.py", "value = 10\n"})
	out, counts, err = made(t, python, first, second, third)
	if got := names(t, out); err != nil || counts.Compiled != 6 {
		t.Errorf("%+v, %v, %v", counts, got, err)
	}
}

func TestRefuses(t *testing.T) {
	python, version := testenv.Interpreter(t)
	// The reader refuses the size before it reads the content.
	var large bytes.Buffer
	if err := tar.NewWriter(&large).WriteHeader(&tar.Header{Name: "a.py", Size: maxFile + 1}); err != nil {
		t.Fatal(err)
	}
	good := layer(t, [2]string{"lib/python" + version + "/a.py", strings.Repeat("1\n", 2000)})
	for name, row := range map[string]struct {
		layer *bytes.Buffer
		want  string
	}{
		"of another version": {layer(t, [2]string{"lib/python3.1/a.py", "1\n"}), "the image has packages for [3.1]"},
		"cut off":            {bytes.NewBuffer(good.Bytes()[:3000]), "unexpected EOF"},
		"too large":          {&large, errTooLarge.Error()},
	} {
		if _, _, err := made(t, python, row.layer); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	if _, err := New(context.Background(), "/none/python3"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// No archive writes outside of the folder.
func TestOutside(t *testing.T) {
	python, version := testenv.Interpreter(t)
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	site := "lib/python" + version + "/"
	_, _, err := made(t, python, layer(t, [2]string{"../../../escaped.py", "1\n"}, [2]string{site + "a.py", "1\n"}, [2]string{site + "b.py", "=../../../../../../../../etc/none.py"}))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "..", "escaped.py")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file escaped")
	}
}
