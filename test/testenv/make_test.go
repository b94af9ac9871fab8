package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A build names each file that it makes, once, and shows the commands only if it is told to.
func TestBuildsAreNotSilent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "Makefile")
	if err := os.WriteFile(file, []byte("include Makefile\nbuild/example-of-a-file:\n\ttest 1 = 1\n\ttest 2 = 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const name, command = "  build/example-of-a-file\n", "test 1 = 1"
	for _, row := range []struct {
		arguments    []string
		want, absent string
	}{
		{nil, name, command},
		{[]string{"V=1"}, command, name},
	} {
		cmd := exec.Command("make", append([]string{"--no-print-directory", "-f", file, "build/example-of-a-file"}, row.arguments...)...)
		cmd.Dir = Root(t)
		cmd.Env = without(os.Environ(), "MAKEFLAGS", "MAKELEVEL", "V")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if text := string(out); strings.Count(text, row.want) != 1 || strings.Contains(text, row.absent) {
			t.Errorf("make %v printed %q, want %q once and no %q", row.arguments, text, row.want, row.absent)
		}
	}
}
