package materialize

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/private"
	"medusa/test/testenv"
)

const otherUser = 54321

// series runs a series whose engine would leave a file if it started. The folder has been prepared by somebody else.
func runIn(t *testing.T, dir string, resume bool) (started bool, err error) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "started")
	library := filepath.Join(t.TempDir(), "library")
	if err := os.WriteFile(library, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), Options{Output: filepath.Join(t.TempDir(), "x.medusa"), Argv: []string{"touch", mark}, Library: library, Traces: dir, Resume: resume,
		Step: func(int, int, string) {}, Note: func(string) {}})
	_, missing := os.Stat(mark)
	return missing == nil, err
}

// A folder of another user takes no traces, and a series does not go on from one.
func TestTracesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	for _, row := range []struct {
		name   string
		resume bool
		plant  func(dir string) error
		bad    string
	}{
		{"another's folder", false, func(dir string) error { return os.Chown(dir, otherUser, otherUser) }, "."},
		{"a folder that all can write", false, func(dir string) error { return os.Chmod(dir, 0o777) }, "."},
		{"another's folder, resumed", true, func(dir string) error { return os.Chown(dir, otherUser, otherUser) }, "."},
		{"another's file among the caches", true, func(dir string) error {
			path := filepath.Join(dir, cachesFolder, "triton", "kernel.so")
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("code"), 0o644), os.Chown(path, otherUser, otherUser))
		}, cachesFolder + "/triton/kernel.so"},
		{"another's traces", true, func(dir string) error {
			path := filepath.Join(dir, runProfile+traceSuffix)
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Chown(path, otherUser, otherUser))
		}, runProfile + traceSuffix},
	} {
		dir := t.TempDir()
		e := &engine{argv: []string{"touch", "x"}, dir: dir, caches: "/tmp/medusa-caches-1"}
		if err := errors.Join(e.keep(series{}), row.plant(dir)); err != nil {
			t.Fatal(err)
		}
		started, err := runIn(t, dir, row.resume)
		var bad *private.Error
		if started || !errors.As(err, &bad) || bad.Path != filepath.Join(dir, row.bad) {
			t.Errorf("%s: started %v, %v", row.name, started, err)
		}
	}
}

// Links that lie in a folder from the time when others could write to it are replaced, not followed.
func TestSeriesFollowsNoLinks(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{seriesFile, runProfile + logSuffix, "layer-0.tar.zst", "x.medusa" + logSuffix} {
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	e := &engine{argv: []string{"vllm", "serve", "--api-key", "sk-of-a-user"}, dir: dir}
	if err := e.keep(series{}); err != nil {
		t.Error(err)
	}
	kept := newOutput(filepath.Join(dir, runProfile+logSuffix))
	if _, err := kept.Write([]byte("all of it")); err != nil || kept.close() != nil {
		t.Error(err)
	}
	failed := keepOutput(kept.failed(runProfile, errors.New("exit status 1")), filepath.Join(dir, "x.medusa"+logSuffix))
	if text, err := os.ReadFile(filepath.Join(dir, "x.medusa"+logSuffix)); err != nil || string(text) != "all of it" {
		t.Errorf("%q, %v; %v", text, err, failed)
	}
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, closing, err := packDirs([]Dir{{Name: "d", Path: source}}, dir, func(string) {}); errors.Join(err, closing()) != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "secret" {
		t.Errorf("the victim has %q (%v)", text, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 {
		t.Errorf("%q, %v", files, err)
	}
	for _, path := range files {
		info, err := os.Lstat(path)
		text, readErr := os.ReadFile(path)
		if err != nil || readErr != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v (%v, %v)", path, info.Mode(), err, readErr)
		}
		if strings.Contains(string(text), "sk-of-a-user") {
			t.Errorf("%s has a key of the command line: %s", path, text)
		}
	}
}
