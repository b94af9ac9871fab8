package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"medusa/test/memregistry"
	"medusa/test/servedlog"
	"medusa/test/testenv"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"medusa": main})
}

// The scripts run the engines and libraries below build/ (from make) on the simulated GPU.
func TestScripts(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	build := testenv.Path(t, "build")
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", build+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("MEDUSA_LIB", filepath.Join(build, "lib", "libmedusa_interpose.so"))
			e.Setenv("LD_LIBRARY_PATH", filepath.Join(build, "simulated"))
			e.Setenv("SIMGPU_SEED", "7")
			e.Setenv("GOLDEN", testenv.Path(t, "artifacts", "testdata", "v1.medusa"))
			e.Setenv("TINY", testenv.Path(t, "runners", "reference", "models", "tiny"))
			e.Setenv("MEDUSA_CACHE", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("DOCKER_CONFIG", e.WorkDir)
			registry := httptest.NewServer(&memregistry.Registry{Referrers: true})
			e.Defer(registry.Close)
			e.Setenv("REGISTRY", strings.TrimPrefix(registry.URL, "http://"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "servedlog": writeServedLog},
	})
}

// exits runs a program and checks its exit code, as in: exits 5 medusa verify x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = exitStatus(err)
	}
	if got != args[0] {
		ts.Fatalf("%v exits with %s, want %s", args[1:], got, args[0])
	}
}

// writeServedLog writes a log in which a model is asked every so many seconds, as in: servedlog FILE EVERY SECONDS.
func writeServedLog(ts *testscript.TestScript, neg bool, args []string) {
	var every, seconds float64
	if neg || len(args) != 3 {
		ts.Fatalf("usage: servedlog FILE EVERY SECONDS")
	}
	if _, err := fmt.Sscan(args[1]+" "+args[2], &every, &seconds); err != nil {
		ts.Fatalf("%v", err)
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	models, list := servedlog.Ann(every, seconds)
	ts.Check(errors.Join(servedlog.Write(f, models, list), f.Close()))
}

// exitStatus returns the exit code that the error of a finished process carries.
func exitStatus(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strconv.Itoa(exit.ExitCode())
	}
	return err.Error()
}

// Errors quote command lines, files and registries. Escape sequences in these do not reach the terminal.
func TestErrorsAreText(t *testing.T) {
	var out, messages bytes.Buffer
	if code := run([]string{"inspect", "\x1b[2Jevil\u009b\r.medusa"}, &out, &messages); code == 0 {
		t.Error("no error")
	}
	if got := messages.String(); strings.ContainsAny(got, "\x1b\u009b\r") || !strings.Contains(got, `\x1b[2Jevil`) || strings.Count(got, "\n") != 1 {
		t.Errorf("message %q", got)
	}
}
