package restore

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/internal/test/bench"
	"medusa/internal/test/enginekit"
	"medusa/internal/test/testenv"
)

// The functions of internal/test/bench/stub/floor.c, which is preloaded.
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

// prepareFloor makes the floor's arrays for the same graphs.
func prepareFloor(b *testing.B, spec *graphir.Spec, functions []cuda.Function) uintptr {
	memory, err := cuda.MemAlloc(1 << 20)
	if err != nil {
		b.Fatal(err)
	}
	graphs := make([]floorGraph, len(spec.Graphs))
	cursor := spec.NewCursor()
	for _, group := range groups(b, spec) {
		for _, member := range group {
			g, err := cursor.Graph(member)
			if err != nil {
				b.Fatal(err)
			}
			launched := make([]cuda.Function, len(g.Nodes))
			for i := range g.Nodes {
				if k := g.Nodes[i].Kernel; k != nil {
					launched[i] = functions[k.Kernel]
				}
			}
			graphs[member] = floorGraph{&launched[0], uint32(len(launched)), uint32(group[0])}
		}
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

// loadKernels loads a module with kernels of the names and parameters that a spec says, which do nothing.
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
	if !floorBuild.Present() || !interposerPresent() {
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
			floor := prepareFloor(b, spec, functions)
			var ours, theirs stubCounts
			// measure times a build, to the end of the uploads.
			measure := func(calls *stubCounts, build func()) time.Duration {
				if stub {
					costs(addCost, setCost, instantiateCost)
					defer func() { *calls = counted() }()
				}
				began := time.Now()
				build()
				if !stub {
					if err := cuda.Synchronize(); err != nil {
						b.Fatal(err)
					}
				}
				return time.Since(began)
			}
			times := bench.Alternate(5, func() time.Duration {
				var destroy func()
				took := measure(&ours, func() { destroy = buildAll(b, spec, functions) })
				destroy()
				return took
			}, func() time.Duration {
				took := measure(&theirs, func() {
					if r, _ := floorBuild.Invoke(floor); r != 0 {
						b.Fatalf("build the floor: %v", cuda.Result(uint32(r)))
					}
				})
				if r, _ := floorDestroy.Invoke(floor); r != 0 {
					b.Fatalf("destroy the floor: %v", cuda.Result(uint32(r)))
				}
				return took
			})
			if stub && (ours != theirs || ours.Uploads != uint64(len(w.Batches))) {
				b.Fatalf("other calls than the floor: %+v and %+v", ours, theirs)
			}
			for b.Loop() {
			}
			bench.Report(b, "restore", times[0])
			bench.Report(b, "floor", times[1])
			bench.ReportRatio(b, "over-floor", times[0], times[1])
		})
	}
}
