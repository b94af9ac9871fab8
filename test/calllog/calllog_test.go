package calllog_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/calllog"
	"medusa/test/testenv"
)

// The counting proxy, which stands before drivers that keep no log, counts the same as the simulated GPU itself.
func TestProxyCountsWhatTheDeviceSees(t *testing.T) {
	testenv.Build(t, "lib", "bin")
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "proxy"), filepath.Join(dir, "device")
	cmd := exec.Command(testenv.Path(t, "build", "reference"), "run", "--model", testenv.Path(t, "runners", "reference", "models", "tiny"),
		"--batch-sizes", "1,8", "--batches", "1:3,8:5")
	cmd.Env = testenv.Simulated(t, "LD_PRELOAD="+testenv.Path(t, "build", "lib", "calllog", "libcuda.so.1"), "CALLLOG="+ours,
		"CALLLOG_DRIVER="+testenv.Path(t, "build", "simulated", "libcuda.so.1"), "SIMGPU_CALL_LOG="+theirs)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	proxy, err := calllog.Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	device, err := calllog.Read(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if proxy.Device != "cuda" || device.Device != "simulated" {
		t.Errorf("devices %q and %q", proxy.Device, device.Device)
	}
	for _, name := range []string{"cuLaunchKernel", "cuGraphLaunch", "cuStreamBeginCapture"} {
		want := calllog.Count(device.Entries, name)
		if got := calllog.Count(proxy.Entries, name); got != want || want == 0 {
			t.Errorf("%s: the proxy counts %d, the device %d", name, got, want)
		}
	}
	if got, want := launches(proxy), launches(device); got != want {
		t.Errorf("launches between marks differ:\n%s\n%s", got, want)
	}
}

// launches spells marks and launches in order, as the two logs have to agree on them.
func launches(l *calllog.Log) string {
	var b strings.Builder
	for _, e := range l.Entries {
		switch {
		case e.Mark != "":
			b.WriteString("mark " + e.Mark + "\n")
		case strings.HasPrefix(e.Name, "cuLaunchKernel"):
			b.WriteString(e.Args["kernel"] + " " + e.Args["grid"] + "\n")
		}
	}
	return b.String()
}

func TestReadNamesTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("start\tdevice=simulated\n0\t1\tnone\tcuInit\tCUDA_SUCCESS\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := calllog.Read(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v, want an error that names line 2", err)
	}
}

func TestBetween(t *testing.T) {
	l := &calllog.Log{Entries: []calllog.Entry{{Name: "cuInit"}, {Mark: "a"}, {Name: "cuMemAlloc_v2"}, {Mark: "b"}, {Name: "cuMemFree_v2"}}}
	for _, tt := range []struct {
		from, to string
		want     int
	}{{"", "", 5}, {"", "a", 1}, {"a", "b", 1}, {"b", "", 1}, {"c", "", 0}, {"a", "c", 3}} {
		if got := len(l.Between(tt.from, tt.to)); got != tt.want {
			t.Errorf("between %q and %q: %d entries, want %d", tt.from, tt.to, got, tt.want)
		}
	}
}
