package compile_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"medusa/graphir"
	"medusa/internal/garbage"
	"medusa/internal/spill"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
	"medusa/test/bench"
	"medusa/test/testenv"
)

// compileVariable makes the test binary compile pairs of traces and print its peak memory. It needs a process of its
// own: the peak of a shared process includes memory of earlier work.
const compileVariable = "COMPILE_BENCH"

func TestMain(m *testing.M) {
	if dir := os.Getenv(compileVariable); dir != "" {
		if err := compileAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// compileAll turns every pair of traces into an artifact, and prints the seconds and the peak resident bytes.
func compileAll(dir string) error {
	pairs, err := filepath.Glob(filepath.Join(dir, "*.A"))
	if err != nil {
		return err
	}
	garbage.Seldom() // as cmd/medusa does
	began := time.Now()
	for _, a := range pairs {
		name := strings.TrimSuffix(a, ".A")
		spec, err := compilePair(a, name+".B")
		if err != nil {
			return err
		}
		if _, err := graphir.EncodeDetached(spec, &spill.File{Dir: dir}); err != nil {
			return err
		}
	}
	fmt.Println(time.Since(began).Nanoseconds(), peakMemory())
	return nil
}

func compilePair(a, b string) (*graphir.Spec, error) {
	ra, err := recording.Read(a)
	if err != nil {
		return nil, err
	}
	rb, err := recording.Read(b)
	if err != nil {
		return nil, err
	}
	spec, _, err := compile.Compile(ra, rb, &spill.File{Dir: filepath.Dir(a)})
	return spec, err
}

// peakMemory is the most that was ever resident of this process, in bytes.
func peakMemory() uint64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// inProcess compiles a directory of traces in a process of its own.
func inProcess(b testing.TB, dir string) (took time.Duration, memory uint64) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), compileVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Sscan(string(out), &took, &memory); err != nil {
		b.Fatalf("%s: %v", out, err)
	}
	return took, memory
}

func writeTraces(b testing.TB, dir string, w bench.Workload) {
	b.Helper()
	for run, letter := range []string{"A", "B"} {
		if err := w.WriteTrace(filepath.Join(dir, w.Name+"."+letter), run); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPaper compiles the paper's ten models, from twenty traces to sections of artifacts. The floor is reading those
// traces as bytes, in order.
func BenchmarkPaper(b *testing.B) {
	dir := b.TempDir()
	for _, w := range bench.Paper() {
		writeTraces(b, dir, w)
	}
	peak := uint64(0)
	times := bench.Alternate(5, func() time.Duration {
		took, memory := inProcess(b, dir)
		peak = max(peak, memory)
		return took
	}, func() time.Duration {
		began := time.Now()
		paths, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, path := range paths {
			if _, err := os.ReadFile(path); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	})
	for b.Loop() {
	}
	b.ReportMetric(times[0].Median().Seconds(), "compile-s")
	b.ReportMetric(100*times[0].Spread(), "compile-spread-%")
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
	bench.ReportRatio(b, "over-read", times[0], times[1])
}

// BenchmarkRecorded compiles traces of the reference engine: a model of 7B class on the simulated GPU.
func BenchmarkRecorded(b *testing.B) {
	testenv.Build(b)
	dir := b.TempDir()
	cmd := exec.Command(testenv.Path(b, "build", "medusa"), "materialize", "-o", filepath.Join(dir, "a.medusa"), "--keep-traces", dir, "--",
		testenv.Path(b, "build", "reference"), "run", "--preset", "llama2-7b", "--batches", "1:2")
	cmd.Env = testenv.Simulated(b, "SIMGPU_COMPUTE=off", "SIMGPU_MEMORY=40G")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	processor := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // of all its runs
	reportGraphs(b, reportCompile(b, dir))
	b.ReportMetric(processor.Seconds(), "all-runs-cpu-s")
	_, whole := graphPart(b, filepath.Join(dir, "a.medusa"))
	b.ReportMetric(float64(whole.Median())/1e6, "read-ms")
}

// reportGraphs measures the graphs without the megabytes of buffers that are saved with them.
func reportGraphs(b *testing.B, spec *graphir.Spec) {
	spec.Contents = nil
	size, decode := graphPart(b, writeArtifact(b, spec))
	b.ReportMetric(float64(size)/1e6, "graph-MB")
	b.ReportMetric(float64(decode.Median())/1e6, "graph-decode-ms")
}

// keptVariable names folders with traces that medusa materialize --keep-traces left, such as a PyTorch engine's.
const keptVariable = "MEDUSA_BENCH_TRACES"

// BenchmarkKept compiles recordings that the user provides (make bench-torch): those of frameworks need more software than this
// repository installs.
func BenchmarkKept(b *testing.B) {
	dirs := filepath.SplitList(os.Getenv(keptVariable))
	if len(dirs) == 0 {
		testenv.Skip(b, testenv.Bench)
	}
	for _, dir := range dirs {
		b.Run(filepath.Base(dir), func(b *testing.B) { reportGraphs(b, reportCompile(b, dir)) })
	}
}

// reportCompile measures compiling the traces in a folder.
func reportCompile(b *testing.B, dir string) *graphir.Spec {
	var spec *graphir.Spec
	nodes := 0
	times := bench.Alternate(7, func() time.Duration {
		return bench.Processor(func() {
			var err error
			if spec, err = compilePair(filepath.Join(dir, "record-a.trace"), filepath.Join(dir, "record-b.trace")); err != nil {
				b.Fatal(err)
			}
		})
	})
	for i := range spec.Graphs {
		nodes += spec.Nodes(i)
	}
	for b.Loop() { // forgets metrics that were reported before
	}
	b.ReportMetric(float64(nodes), "nodes")
	b.ReportMetric(float64(times[0].Median())/1e6, "cpu-ms")
	b.ReportMetric(100*times[0].Spread(), "cpu-spread-%")
	return spec
}

// BenchmarkLarge tells whether time is linear in nodes and memory bounded: the traces of one model each, to sections.
func BenchmarkLarge(b *testing.B) {
	sizes := []int{10_000, 100_000, 1_000_000, 10_000_000}
	var perNode, memory []float64
	for _, nodes := range sizes {
		took, peak := compileLarge(b, nodes)
		perNode, memory = append(perNode, float64(took)/float64(nodes)), append(memory, float64(peak))
	}
	for b.Loop() {
	}
	for i, nodes := range sizes {
		b.ReportMetric(perNode[i], fmt.Sprintf("ns/node-of-%d", nodes))
		b.ReportMetric(memory[i]/1e6, fmt.Sprintf("MB-of-%d", nodes))
	}
	b.ReportMetric(perNode[3]/perNode[0], "time-ratio")
	b.ReportMetric(memory[3]/memory[2], "memory-ratio")
}

func compileLarge(b testing.TB, nodes int) (took time.Duration, memory uint64) {
	dir, err := os.MkdirTemp("", "large-*") // gone before the next, larger one
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	writeTraces(b, dir, bench.Large(nodes))
	return inProcess(b, dir)
}

// TestMemoryDoesNotGrowWithNodes: data that grows with the nodes of graphs goes to a file as it is made.
func TestMemoryDoesNotGrowWithNodes(t *testing.T) {
	_, small := compileLarge(t, 45_000)
	_, large := compileLarge(t, 135_000)
	if ratio := float64(large) / float64(small); ratio > 1.5 {
		t.Errorf("%d bytes for 45,000 nodes, %d for 135,000: %.2f times as much", small, large, ratio)
	}
}
