package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/restore/status"
	"medusa/test/testenv"
)

// An entry point that root starts may give up root's privileges before the engine begins. The engine then cannot write where root can, and its
// start is reported all the same.
func TestEntryPointThatDropsPrivileges(t *testing.T) {
	drop := []string{"setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"}
	if _, err := exec.LookPath(drop[0]); err != nil || os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	zoo := testenv.Path(t, "build", "zoo")
	if err := exec.Command(drop[0], append(drop[1:], "test", "-x", zoo)...).Run(); err != nil {
		testenv.Skip(t, testenv.OtherUser)
	}
	made, _ := materialized(t, zoo)
	dir, err := os.MkdirTemp("", "medusa-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "x.medusa")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made, path); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "status.json")
	for _, options := range [][]string{{"--strict"}, nil, {"--strict", "--status", file}, {"--status", file}} {
		os.Remove(file)
		p := must(t, nil, "medusa", append(append(append([]string{"restore"}, options...), path, "--"), append(drop, zoo)...)...)
		if restored, _ := zooOutput(t, p); !restored || !strings.HasPrefix(p.stderr, "medusa: restored ") || strings.Count(p.stderr, "\n") != 1 {
			t.Errorf("%v: restored %v, said %q", options, restored, p.stderr)
		}
		if st, err := status.Read(file); len(options) > 0 && options[len(options)-1] == file && (err != nil || st.Status != status.Restored) {
			t.Errorf("%v: status %+v, %v", options, st, err)
		}
	}
	// The status is there as long as the engine serves.
	os.Remove(file)
	cmd := exec.Command(testenv.Path(t, "build", "medusa"), append(append([]string{"restore", "--status", file, path, "--"}, drop...), "sh", "-c", zoo+"; sleep 60")...)
	cmd.Env = testenv.Simulated(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if st, err := status.Read(file); err == nil && st.Status == status.Restored {
			break
		} else if time.Now().After(end) {
			t.Errorf("status of a server: %+v, %v", st, err)
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	// A program that is no engine does not pass for one.
	p := start(t, nil, "medusa", append(append([]string{"restore", "--strict", path, "--"}, drop...), "true")...)
	if p.code == 0 || !strings.Contains(p.stderr, "without a session") {
		t.Errorf("without a session: exit %d, %s", p.code, p.stderr)
	}
}
