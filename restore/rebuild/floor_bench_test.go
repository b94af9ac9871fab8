package rebuild

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/live"
	"medusa/test/bench"
	"medusa/test/enginekit"
	"medusa/test/testenv"
)

// The functions of test/bench/stub/floor.c, which is preloaded.
var (
	floorPrepare = cuda.Process("floor_prepare")
	floorBuild   = cuda.Process("floor_build")
	floorDestroy = cuda.Process("floor_destroy")
	floorRelease = cuda.Process("floor_release")
)

// floorGraph mirrors struct floor_graph.
type floorGraph struct {
	functions    *cuda.Function
	nodes, shape uint32
}

// prepareFloor makes the floor's arrays for the graphs of a workload. Which of them share a template is counted here, from the
// workload alone: graphs are chains, so those whose nodes have equal types in equal order.
func prepareFloor(b testing.TB, w bench.Workload, kernels map[string]cuda.Function) uintptr {
	memory, err := cuda.MemAlloc(1 << 20)
	if err != nil {
		b.Fatal(err)
	}
	var graphs []floorGraph
	first := map[string]int{} // graph of each shape
	for i, g := range w.Graphs() {
		launched, types := make([]cuda.Function, len(g)), make([]byte, len(g))
		for k, name := range g {
			if types[k] = 'm'; name != "" {
				types[k] = 'k'
				var known bool
				if launched[k], known = kernels[name]; !known {
					b.Fatalf("graph %d of %s launches %s, which was not compiled", i, w.Name, name)
				}
			}
		}
		if _, known := first[string(types)]; !known {
			first[string(types)] = i
		}
		graphs = append(graphs, floorGraph{&launched[0], uint32(len(g)), uint32(first[string(types)])})
	}
	p, err := floorPrepare.Invoke(uintptr(unsafe.Pointer(&graphs[0])), uintptr(len(graphs)), uintptr(memory))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		floorRelease.Invoke(p)
		runtime.KeepAlive(graphs) // and the functions, which C refers to
		if err := memory.Free(); err != nil {
			b.Error(err)
		}
	})
	return p
}

// byName are the functions of a spec's kernels.
func byName(spec *graphir.Spec, functions []cuda.Function) map[string]cuda.Function {
	out := map[string]cuda.Function{}
	for i, k := range spec.Kernels {
		out[k.Name] = functions[i]
	}
	return out
}

// buildFloor makes the floor's graphs, and returns a function that destroys them.
func buildFloor(b testing.TB, floor uintptr) (destroy func()) {
	if r, _ := floorBuild.Invoke(floor); r != 0 {
		b.Fatalf("build the floor: %v", cuda.Result(uint32(r)))
	}
	return func() {
		if r, _ := floorDestroy.Invoke(floor); r != 0 {
			b.Fatalf("destroy the floor: %v", cuda.Result(uint32(r)))
		}
	}
}

// loadKernels loads a module with empty kernels that have the names and parameters of a spec.
func loadKernels(b *testing.B, spec *graphir.Spec) []cuda.Function {
	var ptx strings.Builder
	ptx.WriteString(".version 7.0\n.target sm_80\n.address_size 64\n")
	for _, k := range spec.Kernels {
		var params []string
		for i, p := range k.Params {
			params = append(params, fmt.Sprintf("\t.param .u%d p%d", 8*p.Size, i))
		}
		fmt.Fprintf(&ptx, "\n.visible .entry %s(\n%s\n)\n{\n\tret;\n}\n", k.Name, strings.Join(params, ",\n"))
	}
	module, err := cuda.ModuleLoadData(append([]byte(ptx.String()), 0))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := module.Unload(); err != nil {
			b.Error(err)
		}
	})
	functions := make([]cuda.Function, len(spec.Kernels))
	for i, k := range spec.Kernels {
		if functions[i], err = module.Function(k.Name); err != nil {
			b.Fatal(err)
		}
	}
	return functions
}

// BenchmarkFloor measures building the graphs of a spec in memory against the floor: with the stub as a driver of published
// cost, else with the driver that there is (scripts/gpu-bench).
func BenchmarkFloor(b *testing.B) {
	if !floorBuild.Present() || !live.Present() {
		testenv.Skip(b, testenv.Bench)
	}
	stub := stubCosts.Present()
	for _, w := range []bench.Workload{bench.Paper()[1], bench.VLLM(), bench.Foundry(128), bench.Foundry(256)} {
		b.Run(w.Name, func(b *testing.B) {
			spec := specOf(b, w)
			functions := functionsFor(spec)
			runtime.LockOSThread()
			if !stub {
				if _, _, err := enginekit.Open(); err != nil {
					b.Fatal(err)
				}
				functions = loadKernels(b, spec)
			}
			floor := prepareFloor(b, w, byName(spec, functions))
			var ours, theirs stubCounts
			// measure times a build, to the end of the uploads.
			measure := func(calls *stubCounts, build func() (destroy func())) time.Duration {
				if stub {
					costs(addCost, setCost, instantiateCost)
				}
				began := time.Now()
				destroy := build()
				if !stub {
					if err := cuda.Synchronize(); err != nil {
						b.Fatal(err)
					}
				}
				took := time.Since(began)
				if stub {
					*calls = counted()
				}
				destroy()
				return took
			}
			times := bench.Alternate(5, func() time.Duration {
				return measure(&ours, func() func() { return buildAll(b, spec, functions) })
			}, func() time.Duration {
				return measure(&theirs, func() func() { return buildFloor(b, floor) })
			})
			if ours.Instantiated != theirs.Instantiated || ours.Uploads != theirs.Uploads {
				b.Fatalf("other graphs than the floor's: %+v and %+v", ours, theirs)
			}
			for b.Loop() {
			}
			bench.Report(b, "build", times[0])
			bench.Report(b, "floor", times[1])
			bench.ReportRatio(b, "over-floor", times[0], times[1])
			if stub {
				b.ReportMetric(float64(ours.calls())/float64(theirs.calls()), "calls-over-floor")
			}
		})
	}
}

// workloadVariable makes TestFewestCalls compare the calls for one workload: it is set for a process that has the stub as its
// driver.
const workloadVariable = "RESTORE_BENCH_WORKLOAD"

// TestFewestCalls holds the driver calls that make a workload's graphs against the fewest that are known, which are counted from
// the workload alone.
func TestFewestCalls(t *testing.T) {
	workloads := []bench.Workload{bench.Paper()[1], bench.Foundry(64)} // decoded as a whole, and in row groups
	if name := os.Getenv(workloadVariable); name != "" {
		i := slices.IndexFunc(workloads, func(w bench.Workload) bool { return w.Name == name })
		compareCalls(t, workloads[i])
		return
	}
	testenv.Build(t, "build/bench/restore.test", "build/stub/libcuda.so.1", "build/stub/libfloor.so", "build/lib/libmedusa_interpose.so")
	for _, w := range workloads {
		t.Run(w.Name, func(t *testing.T) {
			cmd := exec.Command(testenv.Path(t, "build", "bench", "restore.test"), "-test.run", "^TestFewestCalls$", "-test.v")
			cmd.Env = append(testenv.Simulated(t, workloadVariable+"="+w.Name, "MEDUSA_MODE=replay",
				"LD_PRELOAD="+testenv.Path(t, "build", "lib", "libmedusa_interpose.so")+":"+testenv.Path(t, "build", "stub", "libfloor.so")),
				"LD_LIBRARY_PATH="+testenv.Path(t, "build", "stub"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func compareCalls(t *testing.T, w bench.Workload) {
	runtime.LockOSThread()
	spec := specOf(t, w)
	functions := functionsFor(spec)
	floor := prepareFloor(t, w, byName(spec, functions))
	calls := func(build func() (destroy func())) stubCounts {
		costs(0, 0, 0)
		defer build()()
		return counted()
	}
	ours := calls(func() func() { return buildAll(t, spec, functions) })
	theirs := calls(func() func() { return buildFloor(t, floor) })
	if ours != theirs || ours.Uploads != uint64(len(w.Batches)) || ours.Instantiated != uint64(w.Nodes) {
		t.Errorf("%s takes the calls %+v, the floor %+v", w.Name, ours, theirs)
	}
}
