package interpose

import (
	"os/exec"
	"testing"
)

// A map has exactly the keys that were put and not removed, even if their places were in use before. Its size depends on their
// number alone.
func TestMap(t *testing.T) {
	out, err := exec.Command(build(t, "build/test/table"), "20000").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
