package materialize

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/interpose"
	"medusa/interpose/trace"
	"medusa/kvprofile"
)

// shell is an engine whose command is a script.
func shell(t *testing.T, script string) *engine {
	t.Helper()
	library := filepath.Join(t.TempDir(), interpose.LibraryName)
	if err := os.WriteFile(library, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return &engine{argv: []string{"/bin/sh", "-c", script}, library: library, dir: t.TempDir()}
}

// A server that calls the end of its engine process a failure has been recorded all the same; one that failed has not.
func TestTheTraceDecides(t *testing.T) {
	ready, early := &trace.Phase{Name: "ready"}, &trace.Phase{Name: "capture"}
	for _, c := range []struct {
		script, want string // want: part of the error; empty: none
	}{
		{fmt.Sprintf("cp %s $MEDUSA_TRACE; exit 1", traceOf(t, true, ready)), ""},
		{fmt.Sprintf("cp %s $MEDUSA_TRACE; echo broken; exit 1", traceOf(t, false, ready)), "broken"},
		{fmt.Sprintf("cp %s $MEDUSA_TRACE; echo broken; exit 1", traceOf(t, true, early)), "broken"},
		{fmt.Sprintf("cp %s $MEDUSA_TRACE", traceOf(t, true, early)), "never marked"},
		{"echo broken; exit 1", "broken"},
		{"true", "no CUDA driver"},
	} {
		_, err := shell(t, c.script).record(t.Context(), runRecordA, "record", placement{}, []kvprofile.Profile{{KVBytes: 1}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.script, err, c.want)
		}
	}
}

// The output of an earlier run is not taken for this one's.
func TestDigestOfThisRun(t *testing.T) {
	e := shell(t, "echo '{\"version\":3}' >$MEDUSA_CHECK_OUT")
	if _, err := e.check(t.Context(), runCheckNative, contract.Start{Run: contract.RunCheckNative, CheckPlan: "x"}, &artifacts.Artifact{}); err != nil {
		t.Fatal(err)
	}
	e.argv[2] = "echo broken; exit 1"
	if _, err := e.check(t.Context(), runCheckNative, contract.Start{Run: contract.RunCheckNative, CheckPlan: "x"}, &artifacts.Artifact{}); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v", err)
	}
}
