package testenv

import (
	"os/exec"
	"strings"
	"testing"
)

// Interpreter returns the path of Python and its version, such as 3.12. It skips the test if there is none.
func Interpreter(t testing.TB) (python, version string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		Skip(t, Python)
	}
	out, err := exec.Command(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
	if err != nil {
		t.Fatal(err)
	}
	return python, strings.TrimSpace(string(out))
}
