package supervisor

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/restore/status"
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

// withoutMedusa returns options for a shell script, and a function that reads the lines that its start leaves.
func withoutMedusa(t *testing.T, script ...string) (o Options, log func() string) {
	dir := t.TempDir()
	t.Setenv("MEDUSA_CACHE", dir)
	lines, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lines.Close() })
	o = Options{Artifact: Choice{Auto: true}, Library: filepath.Join(dir, "libmedusa_interpose.so"), Status: filepath.Join(dir, "status.json"),
		Argv: append([]string{"/bin/sh", "-c"}, script...), Stdout: io.Discard, Stderr: lines}
	if err := os.WriteFile(o.Library, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return o, func() string {
		data, err := os.ReadFile(lines.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// An engine that does not use Medusa does not pass for a restored one: one line, and a status,
// before its end if it captures.
func TestEngineWithoutMedusa(t *testing.T) {
	const (
		captures = `printf x >"$MEDUSA_UNMARKED"; `
		noticed  = `while [ ! -e "$MEDUSA_STATUS" ]; do sleep 0.01; done; `
		restored = `echo '{"status":"restored"}' >"$MEDUSA_STATUS"; `
	)
	for _, row := range []struct {
		script string
		strict bool
		says   string // its reported act; empty: no line
		reason string // in the status
	}{
		{"exit 0", false, "ended", status.NoSession},
		{"exit 0", true, "ended", ""},
		{"exit 7", true, "", ""}, // which has its own reason
		{restored, true, "", ""},
		{captures + noticed + "exit 0", false, "captures", status.NoSession},
		{captures + noticed + "exit 7", false, "captures", status.NoSession},
		{captures + "exec sleep 60", true, "captures", ""},     // it is ended
		{captures + noticed + restored, false, "captures", ""}, // a session after all
		{restored + captures, false, "", ""},                   // in another process
	} {
		o, log := withoutMedusa(t, row.script)
		o.Strict = row.strict
		_, err := Run(t.Context(), o)
		told := log()
		if err != nil {
			told += err.Error()
		}
		want := row.says != ""
		if (strings.Count(told, "without a session") == 1) != want || !strings.Contains(told, row.says) || (err != nil) != (want && row.strict) {
			t.Errorf("%q, strict %v: %v, log %q", row.script, row.strict, err, told)
		}
		var reason string
		if st, err := status.Read(o.Status); err == nil {
			reason = st.Reason
		}
		if reason != row.reason {
			t.Errorf("%q, strict %v: reason %q, want %q", row.script, row.strict, reason, row.reason)
		}
	}
}

// A server ends when it is told to. Its exit code is passed on, and medusa says that the server had no session.
func TestServerWithoutMedusa(t *testing.T) {
	for script, code := range map[string]int{
		`trap 'exit 0' TERM; touch "$0"; while :; do sleep 0.01; done`: 0,
		`trap 'exit 9' TERM; touch "$0"; while :; do sleep 0.01; done`: 9,
	} {
		up := filepath.Join(t.TempDir(), "up")
		o, log := withoutMedusa(t, script, up)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			for _, err := os.Stat(up); err != nil; _, err = os.Stat(up) {
				time.Sleep(time.Millisecond)
			}
			stop()
		}()
		got, err := Run(ctx, o)
		st, statusErr := status.Read(o.Status)
		if err != nil || got != code || statusErr != nil || st.Status != status.Native || st.Reason != status.NoSession || strings.Count(log(), "native start") != 1 {
			t.Errorf("%q: exit code %d, error %v, status %+v (%v), log %q", script, got, err, st, statusErr, log())
		}
	}
}

// An engine that could not write its status, on a disk that was full for a while, does not count as one without a
// session.
func TestUnwrittenStatus(t *testing.T) {
	for _, strict := range []bool{false, true} {
		o, log := withoutMedusa(t, `: >"$MEDUSA_STATUS.unwritten"`)
		o.Strict = strict
		if code, err := Run(t.Context(), o); code != 0 || err != nil || strings.Contains(log(), "native") || !strings.Contains(log(), "is not known") {
			t.Errorf("strict %v: exit code %d, %v, said %q", strict, code, err, log())
		}
	}
}
