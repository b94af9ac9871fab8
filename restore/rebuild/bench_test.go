package rebuild

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/internal/garbage"
	"medusa/internal/measure"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
	"medusa/restore/live"
	"medusa/restore/memory"
	"medusa/test/bench"
	"medusa/test/enginekit"
	"medusa/test/testenv"
)

// The functions of test/bench/stub, which stands in for the driver.
var (
	stubCosts = enginekit.StandIn("stub_costs")
	stubCount = enginekit.StandIn("stub_count")
)

// Costs of an H100's driver as Foundry publishes them, in nanoseconds; instantiating costs that much a node.
const addCost, setCost, instantiateCost = 37000, 400, 1000

// stubCounts mirrors struct stub_counts.
type stubCounts struct{ Added, Set, Instantiated, Dependencies, Uploads uint64 }

// calls adds up those that are made for each node or graph.
func (c stubCounts) calls() uint64 { return c.Added + c.Set + c.Uploads }

// requireStub skips unless make bench has started the process.
func requireStub(b *testing.B) {
	b.Helper()
	if !stubCosts.Present() || !live.Present() {
		testenv.Skip(b, testenv.Bench)
	}
	runtime.LockOSThread()
	garbage.Seldom() // as cmd/libmedusa does
}

// specOf compiles a workload from its traces.
func specOf(b testing.TB, w bench.Workload) *graphir.Spec {
	b.Helper()
	dir := b.TempDir()
	var runs [2]*recording.Recording
	for i := range runs {
		path := filepath.Join(dir, strconv.Itoa(i))
		err := w.WriteTrace(path, i)
		if err == nil {
			runs[i], err = recording.Read(path)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	spec, pads, err := compile.Compile(runs[0], runs[1], nil)
	if err == nil {
		err = pads.Unproven()
	}
	if err != nil {
		b.Fatal(err)
	}
	return spec
}

// artifactOf materializes a workload as medusa materialize does, verification apart.
func artifactOf(b testing.TB, w bench.Workload) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bench.medusa")
	if err := artifacts.Write(path, &artifacts.Artifact{Spec: specOf(b, w), KV: bench.Profile()}); err != nil {
		b.Fatal(err)
	}
	return path
}

// memoryFor stands for the engine's allocations: addresses alone, as the stub hands them out.
func memoryFor(spec *graphir.Spec) *memory.Map {
	m := &memory.Map{Spec: spec, Base: make([]uint64, spec.Objects())}
	for i, a := range spec.Allocations {
		if a.Owner == graphir.OwnerEngine {
			m.Base[i] = 0x7f0000000000 + uint64(i)<<30
		}
	}
	return m
}

func functionsFor(spec *graphir.Spec) []cuda.Function {
	functions := make([]cuda.Function, len(spec.Kernels))
	for i := range functions {
		functions[i] = cuda.Function(4096 + 16*i)
	}
	return functions
}

func groups(b testing.TB, spec *graphir.Spec) [][]int {
	b.Helper()
	out, err := groupByShape(spec)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// buildAll makes the graphs of a spec, memory for them included, and returns a function that destroys both.
func buildAll(b testing.TB, spec *graphir.Spec, functions []cuda.Function) (destroy func()) {
	m := memoryFor(spec)
	own := &owned{memory: m}
	if err := own.allocate(); err != nil {
		b.Fatal(err)
	}
	builder := &builder{spec: spec, memory: m, functions: functions}
	var err error
	if builder.context, err = cuda.CurrentContext(); err != nil {
		b.Fatal(err)
	}
	execs, err := builder.build(groups(b, spec))
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		if err := errors.Join(destroyExecs(execs), own.free()); err != nil {
			b.Fatal(err)
		}
	}
}

// restoreArtifact makes the steps of a start between opening an artifact and having its graphs, except the work that concerns
// the engine's process instead of nodes.
func restoreArtifact(b testing.TB, path string) {
	a, err := artifacts.Read(path)
	if err != nil {
		b.Fatal(err)
	}
	buildAll(b, a.Spec, functionsFor(a.Spec))
}

// BenchmarkAgain restores one artifact again and again, for TestOwnInstructions, which counts the instructions.
func BenchmarkAgain(b *testing.B) {
	requireStub(b)
	path := os.Getenv(againVariable)
	if path == "" {
		testenv.Skip(b, testenv.Bench)
	}
	costs(0, 0, 0)
	for b.Loop() {
		restoreArtifact(b, path)
	}
}

// readAndDecompress is the floor of reading: the file's bytes in order, and the decompressed bytes.
func readAndDecompress(b *testing.B, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	f, err := artifacts.Open(path) // the section table
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Sections() {
		stored := data[s.Offset : s.Offset+s.StoredSize]
		if s.StoredSize == s.Size {
			continue
		}
		if out, err := decompressor.DecodeAll(stored, make([]byte, 0, s.Size)); err != nil || uint64(len(out)) != s.Size {
			b.Fatalf("section %s: %d bytes: %v", s.Kind, len(out), err)
		}
	}
}

var decompressor, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))

// BenchmarkFirst measures the time from opening an artifact to the first graph's program, ready to be played; how long the
// file takes to read and decompress alone is the floor of it.
func BenchmarkFirst(b *testing.B) {
	requireStub(b)
	path := artifactOf(b, bench.Paper()[1])
	times := bench.Alternate(21, func() time.Duration {
		return bench.Processor(func() {
			a, err := artifacts.Read(path)
			if err != nil {
				b.Fatal(err)
			}
			m := memoryFor(a.Spec)
			if err := (&owned{memory: m}).allocate(); err != nil {
				b.Fatal(err)
			}
			builder := &builder{spec: a.Spec, memory: m, functions: functionsFor(a.Spec), context: 1}
			written, blank, stop := make(chan *sheet), make(chan *sheet, 1), make(chan struct{})
			blank <- &sheet{}
			go builder.write(groups(b, a.Spec), written, blank, stop)
			if s := <-written; s.err != nil || len(s.program.calls) < 350 {
				b.Fatalf("%d calls: %v", len(s.program.calls), s.err)
			}
			close(stop)
		})
	}, func() time.Duration {
		return bench.Processor(func() {
			readAndDecompress(b, path)
		})
	})
	for b.Loop() {
	}
	b.ReportMetric(float64(times[0].Median())/1e6, "first-ms")
	b.ReportMetric(100*times[0].Spread(), "first-spread-%")
	b.ReportMetric(float64(times[1].Median())/1e6, "floor-read-ms")
	bench.ReportRatio(b, "over-read", times[0], times[1])
}

func costs(add, set, instantiate uintptr) { stubCosts.Invoke(add, set, instantiate) }

func counted() stubCounts {
	var c stubCounts
	stubCount.Invoke(uintptr(unsafe.Pointer(&c)))
	return c
}

// BenchmarkOwn measures our own time: everything from the artifact to its graphs with a driver that returns at once.
func BenchmarkOwn(all *testing.B) {
	requireStub(all)
	var half string // the artifact with half as many graphs
	for _, w := range []bench.Workload{bench.Paper()[1], bench.VLLM(), bench.Foundry(128), bench.Foundry(256)} {
		all.Run(w.Name, func(b *testing.B) {
			path := artifactOf(all, w)
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			costs(0, 0, 0)
			var spec *graphir.Spec
			times := bench.Alternate(9, func() time.Duration {
				return bench.Processor(func() { restoreArtifact(b, path) })
			}, func() time.Duration {
				return bench.Processor(func() {
					a, err := artifacts.Read(path)
					if err != nil {
						b.Fatal(err)
					}
					spec = a.Spec
				})
			}, func() time.Duration {
				return bench.Processor(func() { buildAll(b, spec, functionsFor(spec)) })
			})
			for b.Loop() {
			}
			own := times[0].Median()
			b.ReportMetric(float64(own)/1e6, "own-ms")
			b.ReportMetric(float64(own)/float64(w.Nodes), "own-ns/node")
			if w.Name == bench.Foundry(256).Name {
				pairs := bench.Alternate(15, func() time.Duration {
					return bench.Processor(func() { restoreArtifact(b, path) })
				}, func() time.Duration {
					return bench.Processor(func() { restoreArtifact(b, half) })
				})
				b.ReportMetric(float64(measure.Difference(pairs[0], pairs[1]))/float64(w.Nodes/2), "own-ns/node-more")
			}
			half = path
			b.ReportMetric(float64(times[1].Median())/float64(w.Nodes), "read-ns/node")
			b.ReportMetric(float64(times[2].Median())/float64(w.Nodes), "build-ns/node")
			b.ReportMetric(100*times[0].Spread(), "own-spread-%")
			b.ReportMetric(float64(info.Size())/float64(w.Nodes), "bytes/node")
		})
	}
}
