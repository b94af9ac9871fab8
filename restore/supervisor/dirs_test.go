package supervisor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/artifacts/bundled"
	"medusa/graphir"
	"medusa/test/testenv"
)

// cached writes an artifact that holds the cache of a JIT compiler.
func cached(t *testing.T, name string) string {
	t.Helper()
	from, path := t.TempDir(), filepath.Join(t.TempDir(), "x.medusa")
	packed, err := os.Create(filepath.Join(t.TempDir(), "layer"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	if err := os.WriteFile(filepath.Join(from, "kernel.cubin"), []byte("code"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := bundled.Pack(name, from, packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.MkdirTemp(bundled.CachesDir, bundled.CachesPrefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(recorded) })
	if err := os.Remove(recorded); err != nil { // as materialize leaves it
		t.Fatal(err)
	}
	l.Path = filepath.Join(recorded, name)
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 4096, Live: true}},
		Sequence: []graphir.Step{{Alloc: 0}}}
	if err := artifacts.Write(path, &artifacts.Artifact{Spec: spec, Directories: []artifacts.Directory{l}}); err != nil {
		t.Fatal(err)
	}
	return path
}

func anywhere(artifacts.Identity) error { return nil }

// Files that were compiled for an artifact lie in its cache, and the engine is told so; the user's choice stands.
func TestCompiledIsFound(t *testing.T) {
	path := cached(t, "triton")
	m, err := artifacts.ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	recorded, given := m.Directories[0].Path, filepath.Join(t.TempDir(), "given")
	for name, row := range map[string]struct {
		chosen string
		dirs   map[string]string
		want   string // the variable
		says   string
	}{
		"by itself":         {want: recorded},
		"place given":       {dirs: map[string]string{"triton": given}, want: recorded},
		"variable is set":   {chosen: "/mine", says: "TRITON_CACHE_DIR is set, so the artifact's is not used (unset it, or add --dir triton=/mine)"},
		"both, as was said": {chosen: given, dirs: map[string]string{"triton": given}},
	} {
		cache := t.TempDir()
		t.Setenv("MEDUSA_CACHE", cache)
		t.Setenv("TRITON_CACHE_DIR", row.chosen)
		var log bytes.Buffer
		env, release, err := placeDirs(path, row.dirs, anywhere, &log)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		value := ""
		if len(env) == 1 {
			value = strings.TrimPrefix(env[0], "TRITON_CACHE_DIR=")
		}
		if len(env) > 1 || value != row.want {
			t.Errorf("%s: environment %q", name, env)
		}
		if strings.TrimSpace(log.String()) != strings.TrimSpace("medusa: directory triton: "+row.says) && !(row.says == "" && log.Len() == 0) {
			t.Errorf("%s: said %q", name, log.String())
		}
		if value != "" {
			if data, err := os.ReadFile(filepath.Join(value, "kernel.cubin")); err != nil || string(data) != "code" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if inCache, _ := filepath.Glob(filepath.Join(cache, "unpacked", "*", "triton", "*")); (len(inCache) > 0) != (name == "by itself") {
			t.Errorf("%s: in the cache: %v", name, inCache)
		}
		release()
		if _, err := os.Lstat(filepath.Dir(recorded)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder with the link stays: %v", name, err)
		}
	}
}

// Compiled code is not taken from a folder that another user may have made.
func TestLinkNeedsOwnFolder(t *testing.T) {
	to := t.TempDir()
	for name, make := range map[string]func(dir string) error{
		"a link":           func(dir string) error { return os.Symlink(to, dir) },
		"others' to write": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777)) },
		"a file":           func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := link(filepath.Join(dir, "triton"), to); err == nil || !strings.Contains(err.Error(), "not a directory of this user's alone") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "x")
	for _, to := range []string{to, t.TempDir()} { // a second start has the artifact's code elsewhere
		held, err := link(filepath.Join(dir, "triton"), to)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if got, err := os.Readlink(filepath.Join(dir, "triton")); got != to || err != nil {
			t.Errorf("leads to %s, want %s, %v", got, to, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o711 {
			t.Errorf("an engine that gave up its privileges cannot follow the link: %v, %v", info.Mode(), err)
		}
	}
}

// The recorded path can be another user's, by intention or because an engine of that user runs. The start then lacks only the compiled files, and says
// whose the path is: code that names the path would be taken from there.
func TestRecordedPathOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	path := cached(t, "triton")
	m, err := artifacts.ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	held := filepath.Dir(m.Directories[0].Path)
	if err := errors.Join(os.Mkdir(held, 0o755), os.Chown(held, 54321, 54321)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MEDUSA_CACHE", t.TempDir())
	t.Setenv("TRITON_CACHE_DIR", "")
	library := filepath.Join(t.TempDir(), "library")
	if err := os.WriteFile(library, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := Options{Artifact: Choice{Ref: path}, Library: library, Stdout: io.Discard, Stderr: &log,
		Argv: []string{"/bin/sh", "-c", `test -z "$TRITON_CACHE_DIR" && echo '{"status":"restored"}' >$MEDUSA_STATUS`}}
	env, release, err := placeDirs(path, nil, anywhere, &log)
	release()
	if err == nil || len(env) > 0 || !strings.Contains(err.Error(), "user 54321 owns it") {
		t.Errorf("%q, %v", env, err)
	}
	if code, err := Run(t.Context(), o); code != 0 || err != nil || strings.Contains(log.String(), "native start") {
		t.Errorf("exit code %d, %v, said %q", code, err, log.String())
	}
	if links, _ := os.ReadDir(held); len(links) > 0 {
		t.Errorf("in the other user's folder: %v", links)
	}
}

// If the cache cannot be written, the start lacks only the compiled files.
func TestCacheThatCannotBeWritten(t *testing.T) {
	path := cached(t, "triton")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MEDUSA_CACHE", file)
	t.Setenv("TRITON_CACHE_DIR", "")
	if _, _, err := placeDirs(path, nil, anywhere, io.Discard); err == nil || errors.Is(err, artifacts.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
	var log bytes.Buffer
	o := Options{Artifact: Choice{Ref: path}, Library: file, Argv: []string{"/bin/sh", "-c", `echo '{}' >$MEDUSA_STATUS`}, Stdout: io.Discard, Stderr: &log}
	if code, err := Run(t.Context(), o); code != 0 || err != nil || !strings.Contains(log.String(), "open cache") {
		t.Errorf("exit code %d, %v, said %q", code, err, log.String())
	}
}
