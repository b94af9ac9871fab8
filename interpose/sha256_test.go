package interpose

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// The hash of an image is SHA-256, by the processor's instructions and without them.
func TestHashOfImages(t *testing.T) {
	out, err := exec.Command(build(t, "build/test/sha256")).Output()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 70000)
	for i := range data {
		data[i] = byte(i*31 + i/251)
	}
	hashes, states, last := 0, 0, ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "state ") {
			// the portable one, then the chosen one
			if states++; states%2 == 0 && line != last {
				t.Errorf("portable %q, chosen %q", last, line)
			}
			last = line
			continue
		}
		var size int
		var hash string
		if _, err := fmt.Sscan(line, &size, &hash); err != nil || hash != fmt.Sprintf("%x", sha256.Sum256(data[:size])) {
			t.Errorf("%q is not the hash of %d bytes (%v)", line, size, err)
		}
		hashes++
	}
	if hashes < 200 || states < 10 {
		t.Errorf("%d hashes and %d states", hashes, states)
	}
}
