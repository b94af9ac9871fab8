package supervisor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server whose engine process lost its device ends with an exit code of its own.
func TestServerThatLostItsDevice(t *testing.T) {
	for _, c := range []struct {
		status string
		code   int
		aside  bool
	}{
		{`echo '{"status":"sticky"}' >$MEDUSA_STATUS`, 0, true},
		{`echo '{"status":"restored"}' >$MEDUSA_STATUS`, 1, false},
		{`echo '{"status":"restored"}' >$MEDUSA_STATUS; echo '{"status":"sticky"}' >$MEDUSA_STATUS.1`, 0, true}, // rank 1 did
	} {
		dir := t.TempDir()
		o := Options{
			Artifact: Choice{Ref: filepath.Join(dir, "x.medusa")},
			Library:  filepath.Join(dir, "libmedusa_interpose.so"),
			Argv:     []string{"/bin/sh", "-c", `[ -z "$MEDUSA_RUN" ] && exit 0; ` + c.status + `; exit 1`},
			Stdout:   io.Discard, Stderr: io.Discard,
		}
		for _, path := range []string{o.Artifact.Ref, o.Library} {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		code, err := Run(t.Context(), o)
		_, gone := os.Stat(o.Artifact.Ref + ".aside")
		if err != nil || code != c.code || (gone == nil) != c.aside {
			t.Errorf("%s: exit code %d, error %v, set aside: %v", c.status, code, err, gone == nil)
		}
	}
}

// An engine that knows nothing of Medusa does not pass for a restored one.
func TestEngineWithoutMedusa(t *testing.T) {
	for _, row := range []struct {
		script       string
		strict, want bool // want: it is told
	}{
		{"exit 0", false, true},
		{"exit 0", true, true},
		{"exit 7", true, false}, // which has its own reason
		{"echo '{}' >$MEDUSA_STATUS", true, false},
	} {
		dir := t.TempDir()
		var log bytes.Buffer
		t.Setenv("MEDUSA_CACHE", dir)
		o := Options{Artifact: Choice{Auto: true}, Library: filepath.Join(dir, "libmedusa_interpose.so"),
			Argv: []string{"/bin/sh", "-c", row.script}, Strict: row.strict, Stdout: io.Discard, Stderr: &log}
		if err := os.WriteFile(o.Library, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Run(t.Context(), o)
		told := log.String()
		if err != nil {
			told += err.Error()
		}
		if strings.Contains(told, "does not support Medusa") != row.want || (err != nil) != (row.want && row.strict) {
			t.Errorf("%q, strict %v: %v, log %q", row.script, row.strict, err, log.String())
		}
	}
}
