package interpose

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestProtocolIsTheHeaders(t *testing.T) {
	header, err := os.ReadFile("preload/medusa.h")
	if err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf("#define MEDUSA_PROTOCOL %d\n", Protocol); !strings.Contains(string(header), line) {
		t.Errorf("medusa.h does not say %q", line)
	}
}
