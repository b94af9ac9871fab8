package interpose

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"medusa/interpose/trace"
	"medusa/test/testenv"
)

// build makes a target of the root Makefile once and returns its path.
func build(t *testing.T, target string) string {
	t.Helper()
	testenv.Build(t, target)
	return testenv.Path(t, target)
}

// result is the output and exit code of a process.
type result struct {
	stdout, stderr string
	exit           int // -1: killed by a signal
	signal         syscall.Signal
}

// underTest sets the library. If INTERPOSE_SANITIZE is set, it is the one with AddressSanitizer and UBSan.
func underTest(t *testing.T, c Config) Config {
	t.Helper()
	if os.Getenv("INTERPOSE_SANITIZE") == "" {
		c.Library = build(t, "build/lib/"+LibraryName)
		return c
	}
	c.Library = build(t, "build/asan/"+LibraryName)
	runtime, err := exec.Command("cc", "-print-file-name=libasan.so").Output()
	if err != nil {
		t.Fatal(err)
	}
	// The programs keep their own memory until they end, so leaks are not the library's.
	c.ExtraEnv = append(c.ExtraEnv, "LD_PRELOAD="+strings.TrimSpace(string(runtime)), "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0")
	return c
}

// run starts argv under the interposer with the driver in libDir and waits for it.
func run(t *testing.T, c Config, libDir string, argv ...string) result {
	t.Helper()
	c = underTest(t, c)
	c.ExtraEnv = append([]string{"LD_LIBRARY_PATH=" + libDir, "SIMGPU_MEMORY=1G"}, c.ExtraEnv...)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd, err := Command(ctx, c, argv)
	if err != nil {
		t.Fatal(err)
	}
	return wait(t, cmd)
}

func wait(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := result{stdout: stdout.String(), stderr: stderr.String(), exit: cmd.ProcessState.ExitCode()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.signal = ws.Signal()
	}
	return r
}

// record runs argv in record mode, expects it to exit with want and to record no fault, and returns its whole trace.
func record(t *testing.T, c Config, want int, libDir string, argv ...string) ([]trace.Record, result) {
	t.Helper()
	recs, r := recordWithFaults(t, c, want, libDir, argv...)
	for _, f := range of[*trace.Fault](recs) {
		t.Errorf("%v: fault: %s: %s", argv, f.Call, f.Reason)
	}
	return recs, r
}

func recordWithFaults(t *testing.T, c Config, want int, libDir string, argv ...string) ([]trace.Record, result) {
	t.Helper()
	c.Mode = Record
	if c.TracePath == "" {
		c.TracePath = filepath.Join(t.TempDir(), "trace")
	}
	r := run(t, c, libDir, argv...)
	if r.exit != want {
		t.Fatalf("%v: exit %d (%v), want %d\n%s%s", argv, r.exit, r.signal, want, r.stdout, r.stderr)
	}
	recs, err := trace.ReadAll(c.TracePath)
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, r.stderr)
	}
	return recs, r
}

// of selects the records of one type, in order.
func of[R trace.Record](recs []trace.Record) []R {
	var out []R
	for _, r := range recs {
		if r, ok := r.(R); ok {
			out = append(out, r)
		}
	}
	return out
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}
