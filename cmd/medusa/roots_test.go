package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// A process uses the built-in certificates if its system has none.
func TestRootsWithoutASystem(t *testing.T) {
	if os.Getenv("ROOTS_CHILD") == "1" {
		pool, err := x509.SystemCertPool()
		if err != nil || pool.Equal(x509.NewCertPool()) {
			os.Exit(3)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRootsWithoutASystem$")
	cmd.Env = append(os.Environ(), "ROOTS_CHILD=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("no certificates: %v\n%s", err, out)
	}
}
