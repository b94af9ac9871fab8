package probe_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"medusa/internal/cuda"
	"medusa/internal/cuda/probe"
	"medusa/internal/cuda/probe/result"
	"medusa/test/testenv"
)

// Each test loads its driver in a process of its own: this test binary, started again.
func TestMain(m *testing.M) {
	if os.Getenv("PROBE_CHILD") == "1" {
		if err := json.NewEncoder(os.Stdout).Encode(probe.Run()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func run(t *testing.T, variables ...string) *result.Result {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = testenv.Simulated(t, append([]string{"PROBE_CHILD=1"}, variables...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var r result.Result
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return &r
}

func check(t *testing.T, r *result.Result) map[string]result.Feature {
	t.Helper()
	if !r.Reachable || r.Error != "" || len(r.Devices) == 0 {
		t.Fatalf("no device: %+v", r)
	}
	out := map[string]result.Feature{}
	for _, f := range r.Features {
		if f.State == result.Inconclusive {
			t.Errorf("%s: inconclusive: %s", f.Name, f.Detail)
		}
		if f.Since > r.Driver {
			t.Errorf("%s: expected from %d, this driver is %d: the probe never runs where it should succeed", f.Name, f.Since, r.Driver)
		}
		out[f.Name] = f
	}
	return out
}

func TestSimulatedGPU(t *testing.T) {
	r := run(t, "SIMGPU_MEMORY=1G")
	for name, f := range check(t, r) {
		if f.State != result.Available {
			t.Errorf("%s: %s (%s) on driver %d, expected from %d", name, f.State, f.Detail, r.Driver, f.Since)
		}
	}
	if d := r.Devices[0]; d.Name != "Simulated GPU" || d.Memory != 1<<30 || d.Total != 1<<30 || d.Free == 0 || d.ComputeCapability != "9.0" {
		t.Errorf("device is %+v", d)
	}
	if r.Interposer {
		t.Error("an interposer is reported, but none is loaded")
	}
}

func TestOlderDeviceLacksTensorMaps(t *testing.T) {
	for name, f := range check(t, run(t, "SIMGPU_COMPUTE_CAPABILITY=8.0")) {
		if want := map[bool]result.State{true: result.NotSupported, false: result.Available}[name == "tensor maps"]; f.State != want {
			t.Errorf("%s: %s (%s), want %s", name, f.State, f.Detail, want)
		}
	}
}

// A device's attributes can claim what a hypervisor does not pass on: features are tried.
func TestFeaturesAreTried(t *testing.T) {
	for function, feature := range map[string]string{
		"cuMemCreate": "virtual memory management", "cuMemMap": "virtual memory management", "cuMemSetAccess": "virtual memory management",
		"cuMemUnmap": "virtual memory management", "cuMemAddressReserve": "virtual memory management",
		"cuMemAllocAsync": "stream-ordered allocation", "cuMemFreeAsync": "stream-ordered allocation",
	} {
		for name, f := range check(t, run(t, "SIMGPU_LACKS="+function)) {
			if want := map[bool]result.State{true: result.NotSupported, false: result.Available}[name == feature]; f.State != want {
				t.Errorf("without %s: %s: %s (%s), want %s", function, name, f.State, f.Detail, want)
			}
		}
	}
}

func TestNoDriver(t *testing.T) {
	r := run(t, "LD_LIBRARY_PATH=/nonexistent")
	if r.Reachable || r.Error == "" || len(r.Features) != 0 {
		if _, err := exec.LookPath("nvidia-smi"); err == nil {
			testenv.Skip(t, testenv.NoDriver)
		}
		t.Errorf("without a driver: %+v", r)
	}
}

func TestClassify(t *testing.T) {
	for _, row := range []struct {
		err  error
		want result.State
	}{
		{nil, result.Available},
		{fmt.Errorf("x: %w", probe.ErrNotSupported), result.NotSupported},
		{&cuda.MissingError{Library: "libcuda.so.1", Symbol: "cuX"}, result.NotSupported},
		{&cuda.MissingError{Library: "libcuda.so.1"}, result.Inconclusive},
		{fmt.Errorf("cuX: %w", cuda.Result(801)), result.NotSupported},
		{fmt.Errorf("cuX: %w", cuda.OutOfMemory), result.Inconclusive},
		{fmt.Errorf("cuX: %w", cuda.IllegalAddress), result.Inconclusive},
		{errors.New("captured 2 nodes instead of 1"), result.Inconclusive},
	} {
		state, detail := probe.Classify(row.err)
		if state != row.want || (detail == "") != (row.err == nil) {
			t.Errorf("%v is %s (%q), want %s", row.err, state, detail, row.want)
		}
	}
}
