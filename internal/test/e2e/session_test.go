package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/test/testenv"
)

// sessionEngine compiles an engine in C that goes through libmedusa.so.
func sessionEngine(t *testing.T) string {
	t.Helper()
	testenv.Build(t, "lib", "bin", "build/lib/libmedusa.so")
	out := filepath.Join(t.TempDir(), "session")
	lib := testenv.Path(t, "build", "lib")
	cc := exec.Command("cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
		"-I"+testenv.Path(t, "internal", "cuda", "include"), "-I"+testenv.Path(t, "interpose", "preload"),
		"-I"+testenv.Path(t, "interpose", "test"), "-I"+testenv.Path(t, "cmd", "libmedusa"), "-o", out,
		testenv.Path(t, "cmd", "libmedusa", "test", "session.c"), filepath.Join(lib, "libmedusa.so"),
		testenv.Path(t, "build", "simulated", "libcuda.so.1"), "-ldl", "-Wl,-rpath,"+lib)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// An engine in C is recorded and restored, asks before each launch, and does without restored graphs from the launch on
// before which they became invalid.
func TestSessionInC(t *testing.T) {
	engine := sessionEngine(t)
	path, art := materialized(t, engine)
	if len(art.Spec.Graphs) != 1 || len(art.Verification.Graphs) != 1 {
		t.Fatalf("%d graphs, %d verified", len(art.Spec.Graphs), len(art.Verification.Graphs))
	}
	native := strings.Fields(run(t, engine))
	for _, tt := range []struct {
		options []string
		ends    string
		how     string
		built   string // whether the graph was there before it was asked for
		reason  string
	}{
		{nil, "", "restored", "1", ""},
		{[]string{"--lazy"}, "", "restored", "0", ""},
		{[]string{"--addresses=relocate"}, "", "restored", "1", ""},
		{nil, "free", "captured", "1", "freed memory"},
		{nil, "invalidate", "captured", "1", "the engine sleeps"},
		{[]string{"--lazy"}, "invalidate", "captured", "0", "the engine sleeps"},
	} {
		args := append([]string{"restore"}, tt.options...)
		p := must(t, []string{"SESSION_ENDS=" + tt.ends}, "medusa", append(args, path, "--", engine)...)
		got := strings.Fields(p.stdout)
		if len(got) != 3 || got[0] != tt.how || got[1] != native[1] || got[2] != tt.built || !strings.Contains(p.stderr, tt.reason) {
			t.Errorf("%v %q: %q, want %s %s %s\n%s", tt.options, tt.ends, p.stdout, tt.how, native[1], tt.built, p.stderr)
		}
	}
}

// run starts a program natively and returns what it prints.
func run(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = testenv.Simulated(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
