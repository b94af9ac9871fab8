package interpose

import (
	"os/exec"
	"testing"
)

// A map holds what was put into it and not removed, however its places were taken before, and grows with that alone.
func TestMap(t *testing.T) {
	out, err := exec.Command(build(t, "build/test/table"), "20000").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
