package e2e

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"medusa/restore/status"
)

// Devices on which virtual memory calls fail, although the driver has the functions and the device claims the feature (WSL2, virtual GPUs, some
// parts of a GPU): the engine restores from the same artifact, relocated, and starts natively if the artifact does not fit.
func TestDriverWithoutVirtualMemory(t *testing.T) {
	for name, engine := range engines(t) {
		if name == "reference" {
			engine = append(engine[:len(engine):len(engine)], "--batch-sizes", "1,2,8", "-o", "json")
		}
		t.Run(name, func(t *testing.T) {
			path, _ := materialized(t, engine...)
			want := output(t, name, must(t, nil, filepath.Base(engine[0]), engine[1:]...))
			for _, function := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuMemAddressReserve"} {
				lacks := []string{"SIMGPU_LACKS=" + function}
				p, st := started(t, lacks, nil, path, engine)
				if st.Status != status.Restored || st.Addresses != status.Relocated || !strings.Contains(st.Relocated, function) && function != "cuMemAddressReserve" {
					t.Errorf("%s: %s %s: addresses %s (%s): %s\n%s", function, st.Status, st.Reason, st.Addresses, st.Relocated, st.Detail, p.stderr)
				}
				if got := output(t, name, p); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: outputs %v, natively %v", function, got, want)
				}
				if name != "zoo" {
					continue
				}
				p, st = started(t, append(lacks, "ZOO_MODEL=another"), nil, path, engine)
				if st.Status != status.Native || st.Reason != "incompatible" {
					t.Errorf("%s, another model: %+v\n%s", function, st, p.stderr)
				}
			}
		})
	}
}
