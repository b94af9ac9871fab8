package main

import (
	"os/exec"
	"testing"

	"medusa/test/testenv"
)

// A sample of make test-pool.
func TestPool(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		testenv.Skip(t, testenv.Python)
	}
	testenv.Build(t, "lib", "bin", "build/lib/python")
	c, err := run(testenv.Path(t, "build"), t.TempDir(), 32, 3)
	if err != nil {
		t.Fatalf("%s\n%v", c, err)
	}
}
