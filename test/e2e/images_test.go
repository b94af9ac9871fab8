package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// sharedImage makes a shared object that holds the zoo's late module, with more text before it.
func sharedImage(t *testing.T, name, before string) string {
	t.Helper()
	text, err := os.ReadFile(testenv.Path(t, "test", "zoo", "late.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, out := filepath.Join(dir, "late.c"), filepath.Join(dir, name)
	if err := os.WriteFile(source, fmt.Appendf(nil, "const char zoo_late_image[] = {%s0};\n", numbers(before+string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,--build-id", "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func numbers(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%d,", c)
	}
	return b.String()
}

// zooArtifact materializes the zoo with variables set.
func zooArtifact(t *testing.T, variables []string, options ...string) (path string, art *artifacts.Artifact) {
	t.Helper()
	testenv.Build(t, "lib", "bin", "zoo")
	path = filepath.Join(t.TempDir(), "x.medusa")
	args := append([]string{"materialize", "-o", path}, options...)
	must(t, variables, "medusa", append(args, "--", testenv.Path(t, "build", "zoo"))...)
	art, err := artifacts.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, art
}

// A module that no triggering kernel loads comes from its image: of the shared object that held it, or of the artifact; with
// the contents that the host wrote to its variables. If that is not possible, the engine starts natively and says why.
func TestKernelsFromImages(t *testing.T) {
	shared, other := sharedImage(t, "late.so", ""), sharedImage(t, "late.so", "// rebuilt\n")
	off := "ZOO_TRIGGER=off"
	tests := []struct {
		name               string
		recorded, started  []string
		options            []string
		embedded, reloaded int
		reason             string // of a native start
		found              string // how a restored one came by a kernel of the late module
	}{
		{"triggered", nil, nil, nil, 1, 0, "", "triggered"},
		{"embedded", nil, []string{off}, nil, 1, 1, "", "artifact"},
		{"never triggered", []string{off}, []string{off}, nil, 1, 1, "", "artifact"},
		{"written by the host", []string{"ZOO_LATE=written"}, []string{"ZOO_LATE=written", off}, nil, 1, 1, "", "artifact"},
		{"state of its own", []string{"ZOO_LATE=unknown"}, []string{"ZOO_LATE=unknown", off}, nil, 0, 0, "may not be loaded from its image", ""},
		{"load options", []string{"ZOO_LATE=options"}, []string{"ZOO_LATE=options", off}, nil, 0, 0, "may not be loaded from its image", ""},
		{"shared object", []string{"LD_PRELOAD=" + shared}, []string{"LD_PRELOAD=" + shared, off}, nil, 0, 1, "", "object"},
		{"shared object is absent", []string{"LD_PRELOAD=" + shared}, []string{off}, nil, 0, 0, "does not embed its image", ""},
		{"shared object was rebuilt", []string{"LD_PRELOAD=" + shared}, []string{"LD_PRELOAD=" + other, off}, nil, 0, 0, "another one than recorded", ""},
		{"shared object, embedded", []string{"LD_PRELOAD=" + shared}, []string{off}, []string{"--embed-images"}, 1, 1, "", "artifact"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, art := zooArtifact(t, tt.recorded, tt.options...)
			if len(art.Spec.Images) != tt.embedded {
				t.Errorf("%d images embedded, want %d", len(art.Spec.Images), tt.embedded)
			}
			_, want := zooOutput(t, must(t, tt.started, "zoo"))
			for _, addresses := range []string{"exact", "relocate"} {
				p, st := started(t, tt.started, []string{"--addresses=" + addresses}, path, []string{testenv.Path(t, "build", "zoo")})
				isRestored, got := zooOutput(t, p)
				if got != want {
					t.Errorf("%s: outputs differ from native ones", addresses)
				}
				if isRestored != (tt.reason == "") || st.Reloaded != tt.reloaded || !strings.Contains(st.Detail, tt.reason) {
					t.Errorf("%s: restored %v, %d modules reloaded (%s %s)", addresses, isRestored, st.Reloaded, st.Reason, st.Detail)
				}
				if tt.found != "" && st.Found[tt.found] == 0 {
					t.Errorf("%s: kernels were found by %v, one of them should by %q", addresses, st.Found, tt.found)
				}
				if tt.reason != "" && st.Status != status.Native {
					t.Errorf("%s: status %s", addresses, st.Status)
				}
			}
		})
	}
}
