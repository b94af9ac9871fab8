package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/test/testenv"
)

// A series that ends after a step goes on from its traces: the engine starts only for the remaining runs.
func TestResume(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	dir := t.TempDir()
	count, traces, path := filepath.Join(dir, "count"), filepath.Join(dir, "traces"), filepath.Join(dir, "x.medusa")
	compiled := filepath.Join(dir, "compiled")
	// The engine behaves as JIT compilers do: later starts find the file that the first one made, and the
	// file holds its own path.
	engine := []string{"--", "sh", "-c", `echo >>` + count + `; d=$TRITON_CACHE_DIR
		test -e $d/made && read was <$d/made && test "$was" = "$d" || { mkdir -p $d; echo $d >$d/made; echo >>` + compiled + `; }; exec ` + zoo}
	for _, tt := range []struct {
		args   []string
		starts int
	}{
		{[]string{"--until", "profile", "--keep-traces", traces}, 1},
		{[]string{"--until", "record", "--resume", traces}, 2},
		{[]string{"--until", "native", "--resume", traces}, 1},
		{[]string{"--resume", traces, "-o", path}, 1},
	} {
		os.Remove(count)
		p := must(t, nil, "medusa", append(append([]string{"materialize"}, tt.args...), engine...)...)
		starts, err := os.ReadFile(count)
		if err != nil || len(starts) != tt.starts {
			t.Errorf("%v: the engine started %d times, want %d (%v)\n%s", tt.args, len(starts), tt.starts, err, p.stderr)
		}
		if stopped := strings.Contains(p.stdout, "go on with --resume "+traces); stopped == (tt.args[len(tt.args)-1] == path) {
			t.Errorf("%v: %q", tt.args, p.stdout)
		}
		if !strings.Contains(p.stderr, "profile: size the KV cache: ") {
			t.Errorf("%v: no seconds in %q", tt.args, p.stderr)
		}
	}
	if made, err := os.ReadFile(compiled); err != nil || len(made) != 1 {
		t.Errorf("compilers had to compile in %d starts, want 1 (%v)", len(made), err)
	}
	if p, st := restored(t, nil, path, zoo); st.Status != "restored" {
		t.Errorf("restore from a resumed series: %+v\n%s", st, p.stderr)
	}
	// The files of a check-native of another candidate are not taken for this one's.
	of := filepath.Join(traces, "check-native-files", "candidate")
	if err := os.WriteFile(of, []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Remove(count)
	must(t, nil, "medusa", append([]string{"materialize", "--resume", traces, "-o", path}, engine...)...)
	if starts, err := os.ReadFile(count); err != nil || len(starts) != 2 {
		t.Errorf("another candidate: the engine started %d times, want 2 (%v)", len(starts), err)
	}
	alone := append([]string{"materialize", "--ranks-alone", "2", "--resume", traces, "-o", path}, engine...)
	if p := start(t, nil, "medusa", alone...); p.code == 0 || !strings.Contains(p.stderr, "its traces are of a series with --ranks-alone 0, not 2") {
		t.Errorf("ranks alone: exit %d, %s", p.code, p.stderr)
	}
	if p := start(t, nil, "medusa", "materialize", "--resume", traces, "-o", path, "--", zoo); p.code == 0 || !strings.Contains(p.stderr, "its traces are of another command") {
		t.Errorf("another command: exit %d, %s", p.code, p.stderr)
	}
}

// A series whose graphs are tied to their weights has two pairs of recordings. Both are taken when it goes on.
func TestResumeOfATiedSeries(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	dir := t.TempDir()
	count, traces, path := filepath.Join(dir, "count"), filepath.Join(dir, "traces"), filepath.Join(dir, "x.medusa")
	env := []string{"ZOO_CHECKPOINT=1", "ZOO_BAKES=nodes"}
	command := []string{"-o", path, "--", "sh", "-c", "echo >>" + count + "; exec " + testenv.Path(t, "build", "zoo")}
	for _, tt := range []struct {
		flag   string
		starts int
	}{
		{"--keep-traces", 1 + 2 + 2 + 2}, // profile, both pairs of recordings, both checks
		{"--resume", 1},                  // check-restored
	} {
		os.Remove(count)
		p := must(t, env, "medusa", append([]string{"materialize", tt.flag, traces}, command...)...)
		if starts, err := os.ReadFile(count); err != nil || len(starts) != tt.starts {
			t.Errorf("%s: the engine started %d times, want %d (%v)\n%s", tt.flag, len(starts), tt.starts, err, p.stderr)
		}
		if art, err := artifacts.Read(path); err != nil || !art.Identity.Has(artifacts.KeyModelCheckpoint) {
			t.Errorf("%s: the artifact is not tied (%v)", tt.flag, err)
		}
	}
}
