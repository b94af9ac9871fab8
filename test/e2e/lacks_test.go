package e2e

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"medusa/restore/status"
	"medusa/test/calllog"
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

// basic are functions that every device has: an engine cannot compute without them.
var basic = map[string]bool{"cuCtxSynchronize": true, "cuMemcpyHtoD_v2": true}

// Whatever a driver lacks that only a restored start calls for, the engine serves: restored, or natively with a reason.
func TestDriverThatLacksAnyFunction(t *testing.T) {
	options := []string{"--check=full"}
	for name, engine := range engines(t) {
		if name == "reference" {
			engine = append(engine[:len(engine):len(engine)], "--batch-sizes", "1,2", "-o", "json")
		}
		t.Run(name, func(t *testing.T) {
			path, _ := materialized(t, engine...)
			log := filepath.Join(t.TempDir(), "calls")
			want := output(t, name, must(t, []string{"SIMGPU_CALL_LOG=" + log}, filepath.Base(engine[0]), engine[1:]...))
			native := called(t, log)
			started(t, []string{"SIMGPU_CALL_LOG=" + log}, options, path, engine)
			lacked := 0
			for function := range called(t, log) {
				if native[function] || basic[function] {
					continue
				}
				lacked++
				p, st := started(t, []string{"SIMGPU_LACKS=" + function}, options, path, engine)
				if st.Status == status.Native && (st.Reason == "" || st.Reason == status.NoSession || st.Detail == "") || st.Status == status.Sticky {
					t.Errorf("%s: %s: %s: %s\n%s", function, st.Status, st.Reason, st.Detail, p.stderr)
				}
				if got := output(t, name, p); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: outputs %v, natively %v", function, got, want)
				}
			}
			if lacked < 5 {
				t.Errorf("a restored start makes calls of %d functions of its own", lacked)
			}
		})
	}
}

// called returns the functions whose calls succeeded.
func called(t *testing.T, path string) map[string]bool {
	t.Helper()
	log, err := calllog.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, e := range log.Entries {
		if e.Result == "CUDA_SUCCESS" {
			out[e.Name] = true
		}
	}
	return out
}
