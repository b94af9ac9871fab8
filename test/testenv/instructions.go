package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Instructions runs a program under callgrind, and returns how many instructions it took: of all its threads, in user space.
// The test is skipped without valgrind. A program in Go needs GODEBUG=asyncpreemptoff=1, since callgrind of version 3.19 ends
// at a signal inside a system call, and GOGC=off and GOMAXPROCS=1 for counts that agree from run to run.
func Instructions(t testing.TB, env []string, argv ...string) int64 {
	t.Helper()
	if _, err := exec.LookPath("valgrind"); err != nil {
		Skip(t, Valgrind)
	}
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command("valgrind", append([]string{"--tool=callgrind", "--callgrind-out-file=" + out}, argv...)...)
	cmd.Env = env
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "summary: "); ok {
			var n int64
			if _, err := fmt.Sscan(text, &n); err == nil {
				return n
			}
		}
	}
	t.Fatal("callgrind wrote no summary")
	return 0
}
