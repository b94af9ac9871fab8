package materialize_test

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

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/bench"
	"medusa/materialize"
)

// compileVariable makes the test binary compile pairs of traces and tell its peak memory: a process of its own, since
// memory that a garbage collector once had says nothing about what is needed.
const compileVariable = "MATERIALIZE_BENCH_COMPILE"

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
	began := time.Now()
	for _, a := range pairs {
		name := strings.TrimSuffix(a, ".A")
		spec, err := compilePair(a, name+".B")
		if err != nil {
			return err
		}
		if _, err := graphir.EncodeDetached(spec); err != nil {
			return err
		}
	}
	fmt.Println(time.Since(began).Nanoseconds(), peakMemory())
	return nil
}

func compilePair(a, b string) (*graphir.Spec, error) {
	ra, err := materialize.ReadRecording(a)
	if err != nil {
		return nil, err
	}
	rb, err := materialize.ReadRecording(b)
	if err != nil {
		return nil, err
	}
	return materialize.Compile(ra, rb)
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
func inProcess(b *testing.B, dir string) (took time.Duration, memory uint64) {
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

func writeTraces(b *testing.B, dir string, w bench.Workload) {
	b.Helper()
	for run, letter := range []string{"A", "B"} {
		if err := w.WriteTrace(filepath.Join(dir, w.Name+"."+letter), run); err != nil {
			b.Fatal(err)
		}
	}
}

var _ = artifacts.Write

// BenchmarkPaper compiles the paper's ten models, from twenty traces to sections of artifacts.
func BenchmarkPaper(b *testing.B) {
	dir := b.TempDir()
	for _, w := range bench.Paper() {
		writeTraces(b, dir, w)
	}
	var times bench.Times
	peak := uint64(0)
	for range 5 {
		took, memory := inProcess(b, dir)
		times, peak = append(times, took), max(peak, memory)
	}
	for b.Loop() {
	}
	bench.Report(b, "compile", times)
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
}

// BenchmarkCompileX compiles one model in this process, for profiles.
func BenchmarkCompileX(b *testing.B) {
	dir := b.TempDir()
	w := bench.Paper()[9]
	writeTraces(b, dir, w)
	name := filepath.Join(dir, w.Name)
	b.ReportAllocs()
	for b.Loop() {
		s, err := compilePair(name+".A", name+".B")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := graphir.EncodeDetached(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLarge(b *testing.B) {
	for _, n := range []int{10000, 100000, 1000000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			writeTraces(b, dir, bench.Large(n))
			took, memory := inProcess(b, dir)
			for b.Loop() {
			}
			b.ReportMetric(float64(took)/float64(n), "ns/node")
			b.ReportMetric(float64(memory)/1e6, "peak-MB")
		})
	}
}
