package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/cuda/probe/result"
	"medusa/kvprofile"
)

func write(t *testing.T, id artifacts.Identity, spec *graphir.Spec) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.medusa")
	kv := kvprofile.Profile{KVBytes: 100, TotalMemory: 1000, FreeBefore: 900, FreeAfter: 800, PeakForward: 10, Utilization: 0.5, ProfileTokens: 1}
	if err := artifacts.Write(path, &artifacts.Artifact{Identity: id, KV: kv, Spec: spec, Created: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	return path
}

func machine() *Report {
	return &Report{GPU: &result.Result{Reachable: true, Driver: 12080,
		Devices: []result.Device{{Name: "GPU", ComputeCapability: "9.0", SMCount: 2, Memory: 1000, Total: 1000, Free: 900}},
		Features: []result.Feature{{Name: "stream capture", Need: result.Record, State: result.NotSupported},
			{Name: "tensor maps", Need: result.Artifacts, State: result.NotSupported}},
	}}
}

func identity() artifacts.Identity {
	return artifacts.Identity{{Key: "gpu.name", Value: "GPU"}, {Key: "gpu.memory", Value: "1000"}, {Key: "gpu.sm_count", Value: "2"},
		{Key: "gpu.compute_capability", Value: "9.0"}, {Key: "driver.version", Value: "12080"}, {Key: "model.config", Value: "m"}}
}

func TestVerdicts(t *testing.T) {
	relax, err := artifacts.ParseRelaxed("driver.version")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		machine func(*Report)
		id      func(artifacts.Identity)
		spec    graphir.Spec
		relaxed artifacts.Relaxed
		want    string
		reason  string
	}{
		{name: "the same machine", want: Yes},
		{name: "another GPU", id: func(id artifacts.Identity) { id[0].Value = "other" }, want: No, reason: `gpu.name: want "other", got "GPU"`},
		{name: "another driver", id: func(id artifacts.Identity) { id[4].Value = "12090" }, want: No, reason: "driver.version"},
		{name: "another driver, relaxed", id: func(id artifacts.Identity) { id[4].Value = "12090" }, relaxed: relax, want: Yes},
		{name: "another GPU is not relaxed", id: func(id artifacts.Identity) { id[0].Value = "other" }, relaxed: relax, want: No, reason: "gpu.name"},
		{name: "an unknown factor of devices", id: func(id artifacts.Identity) { id[2].Key = "gpu.color" }, want: No, reason: "gpu.color"},
		{name: "memory is taken", machine: func(r *Report) { r.GPU.Devices[0].Free = 50 }, want: No, reason: "free"},
		{name: "memory is not known", machine: func(r *Report) { r.GPU.Devices[0].Total = 0 }, want: Yes},
		{name: "tensor maps", spec: graphir.Spec{TensorMaps: []graphir.TensorMap{{GlobalDim: []uint64{1}, BoxDim: []uint32{1}, ElementStrides: []uint32{1}}}},
			want: No, reason: "lacks tensor maps"},
		{name: "a feature that every restore needs", machine: func(r *Report) { r.GPU.Features[0].Need = result.Restore }, want: No, reason: "lacks stream capture"},
		{name: "an inconclusive feature", machine: func(r *Report) {
			r.GPU.Features[0].Need, r.GPU.Features[0].State = result.Restore, result.Inconclusive
		}, want: Yes},
		{name: "no device", machine: func(r *Report) { r.GPU.Devices = nil }, want: Unknown, reason: "no device"},
		{name: "no probe", machine: func(r *Report) { r.GPU = nil }, want: Unknown, reason: "no device"},
	} {
		r, id := machine(), identity()
		if row.machine != nil {
			row.machine(r)
		}
		if row.id != nil {
			row.id(id)
		}
		v := r.judge(write(t, id, &row.spec), row.relaxed)
		if v.Restores != row.want || (row.want == Yes) != (len(v.Reasons) == 0) || !strings.Contains(strings.Join(v.Reasons, "\n"), row.reason) {
			t.Errorf("%s: %+v, want %s because of %q", row.name, v, row.want, row.reason)
		}
		if len(v.Unchecked) != 1 && len(v.Unchecked) != len(id)-len(r.factors()) {
			t.Errorf("%s: unchecked %v", row.name, v.Unchecked)
		}
	}
	if v := machine().judge("absent.medusa", nil); v.Restores != No || !strings.Contains(v.Reasons[0], "absent.medusa") {
		t.Errorf("no file: %+v", v)
	}
}

func TestOK(t *testing.T) {
	r := machine()
	if r.Parts = []Part{{Name: "driver", OK: true}}; !r.OK() {
		t.Error("a feature that restoring does not need is called for")
	}
	r.GPU.Features[0].Need = result.Restore
	if r.OK() || len(r.Missing(result.Restore)) != 1 {
		t.Error("a missing feature is passed over")
	}
	r = machine()
	if r.Parts = []Part{{Name: "driver"}}; r.OK() {
		t.Error("a missing part is passed over")
	}
}

func TestLoadable(t *testing.T) {
	text := filepath.Join(t.TempDir(), "lib.so")
	if err := os.WriteFile(text, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := loadable(text); err == nil {
		t.Error("a text file is loadable")
	}
	// This test's own executable, with another machine in its ELF header (offset 18).
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[byte]string{0x3e: "amd64", 0xb7: "arm64"} {
		self[18] = machine
		if err := os.WriteFile(text, self, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := loadable(text); (err == nil) != (want == runtime.GOARCH) {
			t.Errorf("a library for %s on %s: %v", want, runtime.GOARCH, err)
		}
	}
	if err := mountable(noExec); err == nil || !strings.Contains(err.Error(), "noexec") {
		t.Errorf("noexec: %v", err)
	}
	if err := mountable(0x1000); err != nil {
		t.Errorf("other flags: %v", err)
	}
}

func TestGrouped(t *testing.T) {
	got := grouped([]string{"model.config", "env.X", "setting.a.b", "engine.name"})
	if want := []string{"model.config", "engine.name", "2 settings"}; !slices.Equal(got, want) {
		t.Errorf("%q instead of %q", got, want)
	}
	if got := grouped([]string{"model.config"}); len(got) != 1 {
		t.Errorf("without settings: %q", got)
	}
}
