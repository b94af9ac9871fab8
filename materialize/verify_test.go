package materialize

import (
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/restore/digest"
	"medusa/restore/status"
)

// Verification fails if the start from the artifact was native, and the message has the reason.
func TestVerifyingStartHasToRestore(t *testing.T) {
	native := &checked{digest: &digest.Digest{}}
	for want, st := range map[string]*status.Status{
		"left no status": nil,
		"was native: incompatible: gpu.name differs": {Status: status.Native, Reason: "incompatible", Detail: "gpu.name differs"},
	} {
		_, err := compareRuns(&artifacts.Artifact{}, native, &checked{digest: &digest.Digest{}, status: st})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "{") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
