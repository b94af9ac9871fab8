package supervisor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/restore/status"
)

// An engine of several ranks that ends before all are ready is started once more, natively. One of a single rank, one whose ranks were all ready, one that
// started natively already and one that ends well are not.
func TestRanksThatEndEarly(t *testing.T) {
	const come = `echo 2 >$MEDUSA_RENDEZVOUS/rank.0; `
	const ready = `echo '{"status":"restored"}' >$MEDUSA_STATUS.0; `
	for name, tt := range map[string]struct {
		script string
		code   int
		strict bool
		again  bool
	}{
		"one rank":           {`exit 9`, 9, false, false},
		"none was ready":     {come + `exit 9`, 9, false, true},
		"one was ready":      {come + ready + `exit 9`, 9, false, true},
		"killed":             {come + `kill -9 $$`, 137, false, true},
		"all were ready":     {come + ready + `cp $MEDUSA_STATUS.0 $MEDUSA_STATUS.1; exit 9`, 9, false, false},
		"one was native":     {come + `echo '{"status":"native"}' >$MEDUSA_STATUS.1; exit 9`, 9, false, false},
		"no failure":         {come + `exit 0`, 0, false, false},
		"no native starts":   {come + `exit 9`, 9, true, false},
		"something unusable": {`echo two >$MEDUSA_RENDEZVOUS/rank.0; exit 9`, 9, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var log bytes.Buffer
			o := Options{
				Artifact: Choice{Ref: filepath.Join(dir, "x.medusa")}, Library: filepath.Join(dir, "libmedusa_interpose.so"), Status: filepath.Join(dir, "status.json"),
				Argv:   []string{"/bin/sh", "-c", `[ -z "$MEDUSA_RUN" ] && exit 7; ` + tt.script},
				Stdout: io.Discard, Stderr: &log, Strict: tt.strict,
			}
			for _, path := range []string{o.Artifact.Ref, o.Library} {
				if err := os.WriteFile(path, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			code, err := Run(t.Context(), o)
			want := tt.code
			if tt.again {
				want = 7 // the native start's own
			}
			if err != nil || code != want {
				t.Errorf("exit code %d, want %d: %v\n%s", code, want, err, log.String())
			}
			if _, err := os.Stat(o.Artifact.Ref); err != nil {
				t.Errorf("the artifact was set aside: %v", err)
			}
			if !tt.again {
				return
			}
			if !strings.Contains(log.String(), "medusa: native start: engine_ended: the engine ended with exit status") {
				t.Errorf("no reason: %s", log.String())
			}
			if st, err := status.Read(o.Status); err != nil || st.Status != status.Native || st.Reason != status.Ended {
				t.Errorf("status %+v, %v", st, err)
			}
		})
	}
}
