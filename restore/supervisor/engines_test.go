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

// Engines that share nothing leave a status each. A lost device of one of them starts all natively, also before the start has a status; another
// failure is passed on, and so is an end in which only one engine was ready. Files of an earlier start do not count.
func TestEnginesThatShareNothing(t *testing.T) {
	const restored, sticky = `echo '{"status":"restored"}'`, `echo '{"status":"sticky"}'`
	for name, tt := range map[string]struct {
		script string
		code   int
	}{
		"lost its device":        {restored + ` >$MEDUSA_STATUS.0; ` + sticky + ` >$MEDUSA_STATUS.1; exit 1`, 7},
		"the first one lost its": {sticky + ` >$MEDUSA_STATUS.0; exit 1`, 7},
		"another failure":        {restored + ` >$MEDUSA_STATUS.0; exit 9`, 9},
		"one was ready":          {restored + ` >$MEDUSA_STATUS.1; exit 0`, 0},
		"none left a status":     {`exit 9`, 9},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var log bytes.Buffer
			o := Options{
				Artifact: Choice{Ref: filepath.Join(dir, "x.medusa")}, Library: filepath.Join(dir, "libmedusa_interpose.so"), Status: filepath.Join(dir, "status.json"),
				Argv:   []string{"/bin/sh", "-c", `[ -z "$MEDUSA_RUN" ] && exit 7; ` + tt.script},
				Stdout: io.Discard, Stderr: &log,
			}
			for _, path := range []string{o.Artifact.Ref, o.Library} {
				if err := os.WriteFile(path, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, engine := range []int{0, 2} {
				if err := status.Write(status.OneOf(o.Status, engine), &status.Status{Status: status.Sticky}); err != nil {
					t.Fatal(err)
				}
			}
			code, err := Run(t.Context(), o)
			if err != nil || code != tt.code {
				t.Errorf("exit code %d, want %d: %v\n%s", code, tt.code, err, log.String())
			}
			_, err = os.Stat(o.Artifact.Ref)
			if aside := os.IsNotExist(err); aside != (tt.code == 7) {
				t.Errorf("artifact set aside: %v\n%s", aside, log.String())
			}
			if strings.Contains(log.String(), "without a session") {
				t.Errorf("a status was overlooked: %s", log.String())
			}
		})
	}
}
