package supervisor

import (
	"io"
	"os"
	"path/filepath"
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
