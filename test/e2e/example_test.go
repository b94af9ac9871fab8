package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/restore/status"
	"medusa/test/calllog"
	"medusa/test/testenv"
)

const exampleEngine = "runners/example/engine.c"

// example compiles the example engine with parts of its source replaced, each of which has to be there once.
func example(t *testing.T, replace ...string) string {
	t.Helper()
	source, err := os.ReadFile(testenv.Path(t, exampleEngine))
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for i := 0; i < len(replace); i += 2 {
		if strings.Count(text, replace[i]) != 1 {
			t.Fatalf("%s has %q %d times, want once", exampleEngine, replace[i], strings.Count(text, replace[i]))
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return engineInC(t, text, testenv.Path(t, filepath.Dir(exampleEngine)))
}

// engineInC compiles an engine with the header of the folder, against this build's library and driver.
func engineInC(t *testing.T, source, folder string) string {
	t.Helper()
	testenv.Build(t, "lib", "bin", "build/lib/libmedusa.so")
	dir := t.TempDir()
	changed, out := filepath.Join(dir, "engine.c"), filepath.Join(dir, "engine")
	if err := os.WriteFile(changed, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	lib := testenv.Path(t, "build", "lib")
	cc := exec.Command("cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Wno-unused", "-Werror",
		"-I"+testenv.Path(t, "internal", "cuda", "include"), "-I"+testenv.Path(t, "build", "generated"), "-I"+testenv.Path(t, "interpose", "preload"),
		"-I"+testenv.Path(t, "cmd", "libmedusa"), "-I"+folder, "-o", out, changed,
		"-L"+lib, "-lmedusa", "-L"+testenv.Path(t, "build", "simulated"), "-l:libcuda.so.1", "-ldl", "-Wl,-rpath,"+lib)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// The example engine of docs/engines.md starts natively, is materialized, and decodes the same from restored graphs without a
// capture.
func TestExampleEngine(t *testing.T) {
	engine := example(t)
	native := strings.Fields(run(t, engine))
	if len(native) != 1+9*8 || native[0] != "captured" {
		t.Fatalf("native: %q", native)
	}
	path, art := materialized(t, engine)
	if len(art.Spec.Graphs) != 3 || len(art.Spec.Triggers) != 1 {
		t.Fatalf("%d graphs, %d triggers", len(art.Spec.Graphs), len(art.Spec.Triggers))
	}
	// Its only results are in the KV cache, and tokens in its inputs.
	if note := art.Verification.Results; note != "" {
		t.Errorf("results: %s", note)
	}
	calls, file := filepath.Join(t.TempDir(), "calls"), filepath.Join(t.TempDir(), "status.json")
	p := must(t, []string{"SIMGPU_CALL_LOG=" + calls}, "medusa", "restore", "--strict", "--status", file, path, "--", engine)
	got := strings.Fields(p.stdout)
	if len(got) != len(native) || got[0] != "restored" || strings.Join(got[1:], " ") != strings.Join(native[1:], " ") {
		t.Errorf("restored: %q\nnative:   %q", got, native)
	}
	st, err := status.Read(file)
	if err != nil || st.Status != status.Restored || st.Graphs != 3 {
		t.Errorf("status %+v, %v", st, err)
	}
	log, err := calllog.Read(calls)
	if err != nil {
		t.Fatal(err)
	}
	if n := calllog.Count(log.Entries, "cuStreamBeginCapture"); n != 0 {
		t.Errorf("%d captures in a restored start", n)
	}
	if n := calllog.Count(log.Entries, "cuGraphLaunch"); n != 9 {
		t.Errorf("%d graph launches, want 9", n)
	}
}

// Mistakes that docs/engines.md warns of end the run profile, or the first run that can show them, with a message that names the
// remedy.
func TestMistakesOfEngines(t *testing.T) {
	page, err := os.ReadFile(testenv.Path(t, "docs/engines.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- mistakes: start -->")
	table, _, _ = strings.Cut(table, "<!-- mistakes: end -->")
	const identify = "	medusa_session_identify(keys, values, 3);\n"
	for _, row := range []struct {
		name    string
		replace []string
		want    string
	}{
		{"no context is current", []string{"	MUST(cuCtxSetCurrent(context));\n", ""}, "no CUDA context is current on this thread (make the engine's context current first)"},
		{"it identifies itself twice", []string{identify, identify + identify}, "call medusa_session_identify once; it marks the identity itself"},
		{"it marks the identity as well", []string{identify, identify + "	MARK(medusa_mark_identity, \"engine.name\", \"example\");\n"},
			"engine.name occurs twice (call medusa_session_identify once; it marks the identity itself)"},
		{"it knows nothing of Medusa", []string{identify, "", "static void enter(const char *phase)\n{\n", "static void enter(const char *phase)\n{\n	return;\n"},
			"marked neither an identity nor a phase (it does not support Medusa, or its plug-in is switched off"},
		{"it never marks ready", []string{"	enter(\"ready\");\n", ""}, "and never marked phase \"ready\" (mark it when the engine is about to serve"},
		{"it never identifies itself", []string{identify, ""}, "the engine stated no identity (call medusa_session_identify"},
		{"captures without labels", []string{"		MARK(medusa_mark_graph, label, batches[i]);\n", ""}, "graph 0 has no label (call medusa_mark_graph"},
		{"captures with one label", []string{`snprintf(label, sizeof label, "decode-%d", batches[i]);`, `snprintf(label, sizeof label, "decode");`},
			`two graphs have the label "decode" (labels must be unique`},
		{"it updates an executable graph", []string{instantiate, instantiate + captureAgain("LARGEST") + update}, `cuGraphExecUpdate changed graph "decode-1" after it was instantiated (node 0)`},
		{"phases marked too late", []string{"	enter(\"warmup\");\n", "", "	enter(\"capture\");\n	for", "	for", "	enter(\"ready\");\n", "	enter(\"capture\");\n	enter(\"ready\");\n"},
			"was captured before phase warmup or capture was marked (mark warmup, then capture"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, said, found := strings.Cut(table, "\n| "+row.name+" | ")
			said, _, _ = strings.Cut(said, " |\n")
			if !found || !strings.Contains(said, row.want) {
				t.Errorf("docs/engines.md says %q of it", said)
			}
			out := filepath.Join(t.TempDir(), "x.medusa")
			p := start(t, nil, "medusa", "materialize", "-o", out, "--", example(t, row.replace...))
			if p.code == 0 || !strings.Contains(p.stderr, said) || strings.Contains(p.stderr, "] record-a:") {
				t.Errorf("exit code %d, want the message %q in the run profile\n%s", p.code, said, p.stderr)
			}
		})
	}
}
