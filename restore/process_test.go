package restore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/kvprofile"
	"medusa/restore/digest"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// Whole-process tests: this test binary, started again as the test engine under the interposer, on the simulated GPU.

func TestMain(m *testing.M) {
	if how := os.Getenv(engineVariable); how != "" {
		code := testEngine(how)
		// os.Exit skips the destructors of C libraries, and with them the simulator's count of leaks.
		_, err := cuda.Process("exit").Invoke(uintptr(code))
		panic(err)
	}
	os.Exit(m.Run())
}

func sha256Of(image []byte) [32]byte { return sha256.Sum256(image) }

// start is one run of the test engine.
type start struct {
	deviations string              // of the engine
	change     func(*graphir.Spec) // of the artifact's graph IR
	identity   artifacts.Factor    // replaces one factor of the artifact
	damage     func([]byte) []byte // of the artifact's file
	kvTotal    uint64              // added to the KV profile's total
	env        []string
}

// outcome is the result of a start.
type outcome struct {
	exit           int
	stdout, stderr string
	leaks          string // the simulator's line at exit
	status         *status.Status
	digest         *digest.Digest
}

func requireSimulator(t *testing.T) (library, driver string) {
	t.Helper()
	testenv.Build(t, "lib")
	return testenv.Path(t, "build", "lib", "libmedusa_interpose.so"), testenv.Path(t, "build", "simulated")
}

// thisDevice asks a process of its own for the simulated GPU's properties.
var thisDevice = sync.OnceValues(func() (device, error) {
	driver, _ := filepath.Abs("../build/simulated")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), engineVariable+"=describe", "LD_LIBRARY_PATH="+driver)
	out, err := cmd.Output()
	var d device
	if err == nil {
		err = json.Unmarshal(out, &d)
	}
	return d, err
})

// writeArtifact writes the artifact that a start asks for.
func (s *start) writeArtifact(t *testing.T, path string) {
	t.Helper()
	d, err := thisDevice()
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec()
	if s.change != nil {
		s.change(spec)
	}
	identity := append(artifacts.Identity{{Key: artifacts.KeyEngineName, Value: "test"}, {Key: artifacts.KeyEngineVersion, Value: "1"}}, d.Identity...)
	for i := range identity {
		if identity[i].Key == s.identity.Key {
			identity[i].Value = s.identity.Value
		}
	}
	a := &artifacts.Artifact{Identity: identity, Spec: spec, KV: kvprofile.Profile{
		KVBytes: nativeKVBytes, TotalMemory: d.Total + s.kvTotal, FreeBefore: d.Free, FreeAfter: d.Free - 1<<20, Utilization: 0.9, ProfileTokens: 1}}
	if err := artifacts.Write(path, a); err != nil {
		t.Fatal(err)
	}
	if s.damage != nil {
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, s.damage(data), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

var leaksLine = regexp.MustCompile(`leaks: .*`)

// run starts the engine. env's ARTIFACT and OUT stand for files of this run.
func (s start) run(t *testing.T) *outcome {
	t.Helper()
	library, driver := requireSimulator(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	s.writeArtifact(t, file("artifact"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), engineVariable+"=engine,"+s.deviations, "LD_PRELOAD="+library, "LD_LIBRARY_PATH="+driver,
		"MEDUSA_MODE=replay", "MEDUSA_STATUS="+file("status"), "SIMGPU_LEAKS=1", "SIMGPU_LOG="+file("log"))
	for _, v := range s.env {
		cmd.Env = append(cmd.Env, strings.NewReplacer("ARTIFACT.", file("artifact"), "OUT.", file("digest")).Replace(v))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o := &outcome{exit: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	log, _ := os.ReadFile(file("log"))
	o.leaks = leaksLine.FindString(string(log))
	if _, err := os.Stat(file("status")); err == nil {
		if o.status, err = status.Read(file("status")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(file("digest")); err == nil {
		if o.digest, err = digest.Read(file("digest")); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("exit %d\n%s%s%s", o.exit, o.stdout, o.stderr, log)
	return o
}

var restoreEnv = []string{"MEDUSA_RUN=restore", "MEDUSA_ARTIFACT=ARTIFACT."}

func TestRestore(t *testing.T) {
	o := start{env: restoreEnv}.run(t)
	if o.exit != 0 || !strings.Contains(o.stdout, "served: correct") || strings.Contains(o.stdout, "kv: profiled") {
		t.Fatalf("exit %d, stdout %q", o.exit, o.stdout)
	}
	st := o.status
	if st == nil || st.Status != status.Restored || st.Graphs != 3 || st.Nodes != 12 || st.Templates != 1 || st.Kernels != 2 || st.Allocations != 2 {
		t.Errorf("status %+v", st)
	}
	if len(st.Triggers) != 1 || st.Triggers[0].Launches != 2 || st.Triggers[0].Batch != 1 {
		t.Errorf("triggers %+v", st.Triggers)
	}
}

// newer makes an artifact one of the next format version.
func newer(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[8:], artifacts.Version+1)
	binary.LittleEndian.PutUint32(b[20:], crc32.Checksum(b[:20], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// Every failure before the first restored launch ends in a native start that says why, serves correctly and leaves
// no memory of the restore behind.
func TestFallback(t *testing.T) {
	native := start{}.run(t)
	if native.exit != 0 {
		t.Fatalf("native start: exit %d", native.exit)
	}
	if native.leaks == "" {
		// Without cgo, Go's own entry point leaves destructors unregistered, so leaks are not counted.
		t.Log("leaks are not counted in this build")
	}
	for name, row := range map[string]struct {
		start  start
		code   Code
		detail string
		strict int // exit code
	}{
		"artifact missing":   {start{env: []string{"MEDUSA_RUN=restore", "MEDUSA_ARTIFACT=/nonexistent"}}, ArtifactMissing, "/nonexistent", 1},
		"artifact corrupt":   {start{damage: func(b []byte) []byte { b[len(b)-1] ^= 1; return b }}, ArtifactCorrupt, "", 5},
		"artifact empty":     {start{damage: func([]byte) []byte { return nil }}, ArtifactCorrupt, "", 5},
		"newer artifact":     {start{damage: newer}, "format", "medusa materialize -o FILE -- ENGINE", 3},
		"other GPU":          {start{identity: artifacts.Factor{Key: artifacts.KeyGPUName, Value: "Another GPU"}}, Incompatible, "Another GPU", 3},
		"other engine":       {start{deviations: "version"}, Incompatible, artifacts.KeyEngineVersion, 3},
		"other memory":       {start{kvTotal: 4096}, Memory, "device has", 3},
		"other sequence":     {start{deviations: "size"}, SequenceMismatch, "step 0 was #0 (device, 4096 bytes)", 1},
		"module not loaded":  {start{deviations: "nomodule"}, KernelNotFound, "resolve kernel mix", 1},
		"layer not run":      {start{deviations: "notrigger"}, KernelNotFound, "no triggering kernel led to the module", 1},
		"layer fails":        {start{deviations: "triggerfails"}, Engine, "no such layer", 1},
		"other parameters":   {start{change: func(s *graphir.Spec) { s.Kernels[1].Params[1].Size = 8 }}, KernelNotFound, "", 1},
		"other image":        {start{change: func(s *graphir.Spec) { s.Modules[0].ImageSHA256[0]++ }}, KernelNotFound, "module is not loaded", 1},
		"other hidden names": {start{change: func(s *graphir.Spec) { s.Modules[1].Functions = []string{"more", "some"} }}, KernelNotFound, "hidden", 1},
		"no room":            {start{change: func(s *graphir.Spec) { s.Allocations[allocTmp].Size = 1 << 50 }}, Memory, "allocate graph-owned allocation 5", 3},
		"node refused": {start{change: func(s *graphir.Spec) { s.Graphs[2].Nodes[1].Kernel().Block[0] = 5000 }}, DriverError,
			"build graph decode-16: node 1: cuGraphKernelNodeSetParams_v2", 1},
		"edge refused": {start{change: func(s *graphir.Spec) { s.Graphs[1].Edges[0].Type = 1 }}, DriverError, // no kernel edge
			"build graph decode-4: cuGraphAddDependencies_v2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			if row.start.env == nil {
				row.start.env = restoreEnv
			}
			o := row.start.run(t)
			if o.exit != 0 || !strings.Contains(o.stdout, "served: correct") {
				t.Fatalf("exit %d, stdout %q", o.exit, o.stdout)
			}
			if o.status == nil || o.status.Status != status.Native || o.status.Reason != string(row.code) || !strings.Contains(o.status.Detail, row.detail) {
				t.Errorf("status %+v, want reason %s with %q", o.status, row.code, row.detail)
			}
			if strings.Count(o.stderr, "medusa: native start: "+string(row.code)) != 1 {
				t.Errorf("stderr %q, want one line with the reason", o.stderr)
			}
			if o.leaks != native.leaks {
				t.Errorf("left behind %q, a native start leaves %q", o.leaks, native.leaks)
			}
			row.start.env = append(row.start.env, "MEDUSA_STRICT=1")
			if o := row.start.run(t); o.exit != row.strict || o.status == nil || o.status.Status != status.Native {
				t.Errorf("strict: exit %d with status %+v, want exit %d", o.exit, o.status, row.strict)
			} else if strings.Contains(o.stderr, "native start") || strings.Count(o.stderr, "medusa: cannot restore: "+string(row.code)) != 1 {
				t.Errorf("strict: stderr %q, want one line with the reason that speaks of no native start", o.stderr)
			}
		})
	}
}

// After a sticky error the process can do no further work.
func TestStickyError(t *testing.T) {
	for name, s := range map[string]start{
		"restored graph": {change: func(s *graphir.Spec) {
			s.Graphs[0].Nodes[1].Kernel().Relocations[0].Pointer.Offset = 2 * bufferBytes // mix writes behind the end of tmp
		}},
		"triggering layer": {deviations: "triggerfaults"},
	} {
		t.Run(name, func(t *testing.T) {
			s.env = restoreEnv
			o := s.run(t)
			if o.exit != status.ExitSticky || o.status == nil || o.status.Status != status.Sticky || !strings.Contains(o.status.Detail, "ILLEGAL_ADDRESS") {
				t.Errorf("exit %d, status %+v; want %d and sticky", o.exit, o.status, status.ExitSticky)
			}
		})
	}
}

// The engine creates its context while the artifact is being read. The artifact is a named pipe, which can be opened for
// reading only when the engine opens the other end. By then the engine has its context.
func TestArtifactIsReadMeanwhile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	o := start{deviations: "gated", env: []string{"MEDUSA_RUN=restore", "MEDUSA_ARTIFACT=" + pipe}}.run(t)
	if o.exit != 0 || !strings.Contains(o.stdout, "served: correct") {
		t.Fatalf("exit %d, stdout %q", o.exit, o.stdout)
	}
	if o.status == nil || o.status.Reason != string(ArtifactMissing) || !strings.Contains(o.status.Detail, "not a regular file") {
		t.Errorf("status %+v, want one that says what was read", o.status)
	}
}

// Without Medusa, an engine that is asked for its status tells only its phases.
func TestAbsentMedusa(t *testing.T) {
	o := start{}.run(t)
	if o.exit != 0 || !strings.Contains(o.stdout, "served: correct") || o.stderr != "" ||
		o.status == nil || o.status.Status != status.Native || o.status.Reason != "" || len(o.status.Spans) != 0 {
		t.Errorf("exit %d, status %+v, stderr %q", o.exit, o.status, o.stderr)
	}
}

var (
	checkNative   = []string{"MEDUSA_RUN=check-native", "MEDUSA_KV_BYTES=8192", "MEDUSA_CHECK_OUT=OUT.", "MEDUSA_CHECK_PLAN=ARTIFACT."}
	checkRestored = []string{"MEDUSA_RUN=check-restored", "MEDUSA_CHECK_OUT=OUT.", "MEDUSA_ARTIFACT=ARTIFACT."}
)

// differences lists the classes whose chunks two native replays left alike and a restored one did not.
func differences(native, restored *digest.Digest) map[string]bool {
	found := make(map[string]bool)
	compare := func(where string, a, b []digest.Range) {
		for i := range a {
			for c := range a[i].Chunks() {
				if a[i].Stable(c) && (!bytes.Equal(a[i].Hash(0, c), b[i].Hash(0, c)) || !b[i].Stable(c)) {
					found[where+string(a[i].Class)] = true
				}
			}
		}
	}
	compare("ready: ", native.Ready, restored.Ready)
	for i := range native.Graphs {
		compare("", native.Graphs[i].Ranges, restored.Graphs[i].Ranges)
	}
	compare("end: ", native.End, restored.End)
	return found
}

// A restored process leaves the same memory as a native one; every deviation of it shows.
func TestVerification(t *testing.T) {
	native := start{env: checkNative}.run(t)
	if native.exit != 0 || native.digest == nil || len(native.digest.Graphs) != 3 {
		t.Fatalf("check-native: exit %d, digest %+v", native.exit, native.digest)
	}
	for _, g := range native.digest.Graphs {
		for i := range g.Ranges {
			r := &g.Ranges[i]
			if temporary := r.Class == digest.Temporary; !temporary && !r.Stable(0) {
				t.Errorf("graph %s: native replays differ in %s memory of allocation %d", g.Label, r.Class, r.Alloc)
			} else if temporary && r.Stable(0) { // no graph writes all of it
				t.Errorf("graph %s: allocation %d held the same garbage before both replays", g.Label, r.Alloc)
			}
		}
	}
	for name, row := range map[string]struct {
		start start
		want  []string // differing classes
	}{
		"as captured":         {start{}, nil},
		"other output buffer": {start{change: func(s *graphir.Spec) { s.Graphs[0].Nodes[3].Memcpy().Dst.Pointer.Offset = 4 }}, []string{"output"}},
		"other constant":      {start{change: func(s *graphir.Spec) { s.Graphs[0].Nodes[2].Kernel().Params[8]-- }}, []string{"output"}},
		"kernel of the same name": {start{change: func(s *graphir.Spec) { s.Kernels[1].Module = 0 }},
			[]string{"output"}},
		"library's kernel of the same name": {start{change: func(s *graphir.Spec) { s.Kernels[1].Module = 2 }},
			[]string{"output"}},
		"permanent buffer not saved": {start{change: func(s *graphir.Spec) { s.Contents[0].Data[0]++ }}, []string{"permanent", "output"}},
		"saved pointer elsewhere":    {start{change: func(s *graphir.Spec) { s.Contents[0].Relocations[0].Pointer.Offset = 8 }}, []string{"permanent"}},
		"left by skipped work":       {start{deviations: "dirty"}, []string{"ready: other", "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			row.start.env = checkRestored
			o := row.start.run(t)
			if o.exit != 0 || o.digest == nil || o.status == nil || o.status.Status != status.Restored {
				t.Fatalf("check-restored: exit %d, status %+v", o.exit, o.status)
			}
			found := differences(native.digest, o.digest)
			for _, class := range row.want {
				if !found[class] {
					t.Errorf("no difference in %s memory (in %v)", class, found)
				}
				delete(found, class)
			}
			if row.want == nil && len(found) != 0 {
				t.Errorf("differences in %v", found)
			}
		})
	}
}

// Weights are compared before the first replay and after the last one, however large they are: in between they may be too
// large to be hashed each time.
func TestWeightsAreComparedAtTheEnd(t *testing.T) {
	weights := func(s *graphir.Spec) {
		s.Tensors = append(s.Tensors, graphir.Tensor{Name: "weights", Role: graphir.RoleWeight, DType: graphir.U8,
			At: graphir.Pointer{Index: allocIn, Offset: 2048}, Size: 2048, Shape: []int64{2048}, Hi: 1})
	}
	native := start{env: checkNative, change: weights}.run(t)
	o := start{env: checkRestored, change: func(s *graphir.Spec) {
		weights(s)
		last := &s.Graphs[len(s.Graphs)-1]
		last.Nodes[0].Memset().Dst = graphir.Pointer{Index: allocIn, Offset: 2048}
	}}.run(t)
	if native.digest == nil || o.digest == nil {
		t.Fatalf("exit %d and %d", native.exit, o.exit)
	}
	if found := differences(native.digest, o.digest); !found["end: weight"] || found["ready: weight"] {
		t.Errorf("a graph wrote to weights: differences in %v", found)
	}
}

// Without its join, a graph may still run in the captured order; over several seeds of the simulator it does not.
func TestVerificationOfEdges(t *testing.T) {
	native := start{env: checkNative}.run(t)
	for seed := 1; seed <= 20; seed++ {
		o := start{env: append([]string{fmt.Sprintf("SIMGPU_SEED=%d", seed)}, checkRestored...), change: func(s *graphir.Spec) {
			for i := range s.Graphs {
				s.Graphs[i].Edges = s.Graphs[i].Edges[:2] // more and memcpy in any order
			}
		}}.run(t)
		if o.digest == nil {
			t.Fatalf("check-restored: exit %d", o.exit)
		}
		if differences(native.digest, o.digest)["output"] {
			return
		}
	}
	t.Error("no difference in output memory under any seed")
}

// Fills of thousands of replays are copies on the device: after the first one, no byte comes from the host.
func TestFillsStayOnTheDevice(t *testing.T) {
	log := filepath.Join(t.TempDir(), "calls")
	o := start{env: append([]string{"SIMGPU_CALL_LOG=" + log}, checkRestored...)}.run(t)
	if o.exit != 0 || o.digest == nil {
		t.Fatalf("check-restored: exit %d", o.exit)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var launches, between []string // between: the calls behind each replay
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "cuGraphLaunch") {
			launches = append(launches, line)
			between = append(between, "")
		} else if len(between) > 0 {
			between[len(between)-1] += line
		}
	}
	replays := 2 * len(o.digest.Graphs)
	if len(launches) < replays {
		t.Fatalf("%d replays, want %d", len(launches), replays)
	}
	for i, calls := range between[:replays-1] {
		if n := strings.Count(calls, "cuMemcpyHtoD"); n != 0 || !strings.Contains(calls, "cuMemcpyDtoDAsync") {
			t.Errorf("%d copies from the host between replays %d and %d:\n%s", n, i, i+1, calls)
		}
	}
}
