package interpose

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommandEnvironment(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, LibraryName)
	if err := os.WriteFile(lib, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_PRELOAD", "/other.so")
	t.Setenv("MEDUSA_GAP_SEED", "99")
	t.Setenv("MEDUSA_AT_READY", "exit")
	cmd, err := Command(t.Context(), Config{Library: lib, Mode: Record, TracePath: filepath.Join(dir, "trace"), ExtraEnv: []string{"A=b"}}, []string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LD_PRELOAD=" + lib + ":/other.so", "MEDUSA_MODE=record", "MEDUSA_TRACE=" + filepath.Join(dir, "trace"), "A=b"} {
		if !slices.Contains(cmd.Env, want) {
			t.Errorf("no %q in the environment", want)
		}
	}
	for _, kv := range cmd.Env {
		if strings.HasPrefix(kv, "MEDUSA_GAP_SEED=") || strings.HasPrefix(kv, "MEDUSA_AT_READY=") {
			t.Errorf("inherited %q", kv)
		}
	}
}

func TestPythonPath(t *testing.T) {
	dir := t.TempDir()
	lib, plugin := filepath.Join(dir, LibraryName), filepath.Join(dir, "python")
	if err := os.WriteFile(lib, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		present         bool
		inherited, want string
	}{
		{false, "", "PYTHONPATH="},
		{false, "/a:/b", "PYTHONPATH=/a:/b"},
		{true, "", "PYTHONPATH=" + plugin},
		{true, "/a:/b", "PYTHONPATH=" + plugin + ":/a:/b"},
		{true, plugin, "PYTHONPATH=" + plugin},
	} {
		if c.present {
			if err := os.MkdirAll(plugin, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PYTHONPATH", c.inherited)
		cmd, err := Command(t.Context(), Config{Library: lib, Mode: Replay}, []string{"true"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kv := range cmd.Env {
			if strings.HasPrefix(kv, "PYTHONPATH=") {
				got = append(got, kv)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("plug-in %v, PYTHONPATH %q inherited: %q, want %q", c.present, c.inherited, got, c.want)
		}
	}
}

func TestCommandRefuses(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, LibraryName)
	if err := os.WriteFile(lib, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		config Config
		argv   []string
		want   string
	}{
		{"no command", Config{Mode: Replay, Library: lib}, nil, "empty"},
		{"no mode", Config{Library: lib}, []string{"true"}, "unknown mode"},
		{"no trace", Config{Mode: Record, Library: lib}, []string{"true"}, "needs a trace path"},
		{"existing trace", Config{Mode: Record, Library: lib, TracePath: lib}, []string{"true"}, "exists"},
		{"gaps in replay", Config{Mode: Replay, Library: lib, GapSeed: 1}, []string{"true"}, "no gaps"},
		{"no library", Config{Mode: Replay, Library: filepath.Join(dir, "none.so")}, []string{"true"}, "none.so"},
	} {
		if _, err := Command(t.Context(), c.config, c.argv); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestFindLibrary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MEDUSA_LIB", dir)
	if _, err := FindLibrary(); !errors.Is(err, errNoLibrary) {
		t.Errorf("empty folder: %v", err)
	}
	lib := filepath.Join(dir, LibraryName)
	if err := os.WriteFile(lib, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{dir, lib} {
		t.Setenv("MEDUSA_LIB", value)
		if got, err := FindLibrary(); err != nil || got != lib {
			t.Errorf("MEDUSA_LIB=%s: %q, %v", value, got, err)
		}
	}
	t.Setenv("MEDUSA_LIB", "")
	if _, err := FindLibrary(); !errors.Is(err, errNoLibrary) {
		t.Errorf("beside the test binary: %v", err)
	}
}
