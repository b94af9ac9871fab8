package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/restore/status"
)

// A program whose dynamic linker refuses the interposer, as that of musl does, starts natively, and the reason is said.
func TestProgramThatCannotLoadTheInterposer(t *testing.T) {
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	compile := func(text, out string, flags ...string) string {
		t.Helper()
		cmd := exec.Command("cc", append([]string{"-x", "c", "-", "-x", "none", "-w", "-o", filepath.Join(dir, out)}, flags...)...)
		cmd.Stdin = strings.NewReader(text)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return filepath.Join(dir, out)
	}
	library := compile("int x;", "lib.so", "-shared", "-fPIC")
	// A library for a newer glibc, as it were: it needs a version that another library lacks.
	for script, text := range map[string]string{"v1": "V1 { global: v; };", "v2": "V2 { global: v; };"} {
		if err := os.WriteFile(filepath.Join(dir, script), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := func(script string) string {
		return compile("int v(void) { return 1; }", "libv.so", "-shared", "-fPIC", "-Wl,-soname,libv.so", "-Wl,--version-script="+filepath.Join(dir, script))
	}
	newer := compile("int v(void); int u(void) { return v(); }", "newer.so", "-shared", "-fPIC", other("v2"), "-Wl,-rpath,"+dir)
	other("v1")
	// A program of another C library, as it were.
	musl := compile(`#include <stdlib.h>
		#include <unistd.h>
		int main(int n, char **args) { if (getenv("LD_PRELOAD")) return 127; return execl("/bin/sh", "sh", "-c", ": >\"$0\"", args[1], NULL); }`, "musl", "-static")
	for _, row := range []struct {
		argv          []string
		library, says string
	}{
		{[]string{"/bin/sh", "-c", `: >"$0"`, ran}, newer, "version `V2' not found"},
		{[]string{"/bin/sh", "-c", musl + ` "$0"`, ran}, library, "cannot load the interposer"},
		{[]string{musl, ran}, library, "cannot load the interposer"},
	} {
		for _, strict := range []bool{false, true} {
			os.Remove(ran)
			o, log := withoutMedusa(t)
			o.Argv, o.Library, o.Strict = row.argv, row.library, strict
			code, err := Run(t.Context(), o)
			_, missing := os.Stat(ran)
			if strict {
				if err == nil || !strings.Contains(err.Error(), row.says) || missing == nil {
					t.Errorf("%q, strict: exit code %d, %v", row.argv, code, err)
				}
				continue
			}
			st, statusErr := status.Read(o.Status)
			if err != nil || code != 0 || missing != nil || statusErr != nil || st.Reason != status.NoSession || !strings.Contains(st.Detail, row.says) {
				t.Errorf("%q: exit code %d, %v, ran: %v, status %+v (%v), said %q", row.argv, code, err, missing == nil, st, statusErr, log())
			}
		}
	}
}

// An engine of which no library can be a part is named with the reason.
func TestStaticEngine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "static")
	cmd := exec.Command("cc", "-x", "c", "-", "-static", "-o", program)
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	o, log := withoutMedusa(t)
	o.Argv, o.Library = []string{program}, "/proc/self/exe"
	if code, err := Run(t.Context(), o); code != 0 || err != nil || !strings.Contains(log(), "statically linked and loads no library") {
		t.Errorf("exit code %d, %v, said %q", code, err, log())
	}
}
