package programs_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"

	"medusa/test/programs"
	"medusa/test/testenv"
)

const (
	wanted = 300
	batch  = 10
)

// 300 random programs are recorded, compiled, restored in a new process and compared, refused ones not counted. The test
// ends at the first that differs. Every restorable thing that the plans know has to occur in at least 2 % of them.
func TestPrograms(t *testing.T) {
	testenv.Build(t, "lib", "bin", "programs-engine")
	t.Setenv("LD_LIBRARY_PATH", testenv.Path(t, "build", "simulated"))
	build, dir := testenv.Path(t, "build"), t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var mu sync.Mutex
	total, next := programs.NewOutcome(), uint64(1)
	take := func() []uint64 {
		mu.Lock()
		defer mu.Unlock()
		if total.Restored >= wanted || len(total.Different) > 0 {
			return nil
		}
		var seeds []uint64
		for range batch {
			seeds = append(seeds, next)
			next++
		}
		return seeds
	}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for seeds := take(); seeds != nil; seeds = take() {
				r := &programs.Runner{Build: build, Dir: dir, Variables: programs.Drivers(seeds[0] / batch)}
				out, err := r.Batch(ctx, seeds)
				mu.Lock()
				total.Add(out)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if err != nil || len(out.Different) > 0 {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	for seed, err := range total.Different {
		t.Errorf("program %d: %v", seed, err)
	}
	if t.Failed() {
		return
	}
	for _, f := range programs.Features() {
		if share := 100 * total.Features[f] / total.Restored; share < 2 {
			t.Errorf("%s occurs in %d of %d programs", f, total.Features[f], total.Restored)
		}
	}
	if total.Refused == 0 {
		t.Error("no program was refused, though some must be")
	}
	t.Logf("%d restored, %d refused, %d nodes", total.Restored, total.Refused, total.Nodes)
}

// A seed means the same program everywhere: the parent judges the run of the engine.
func TestPlansRepeat(t *testing.T) {
	for seed := range uint64(50) {
		if !reflect.DeepEqual(programs.New(seed), programs.New(seed)) {
			t.Errorf("seed %d makes two programs", seed)
		}
	}
}

// If two operations meet in memory and one of them writes, a path of edges orders them; else a program would have no
// right answer.
func TestPlansAreOrdered(t *testing.T) {
	for seed := range uint64(500) {
		for gi, g := range programs.New(seed).Graphs {
			before := make([][]bool, len(g.Ops))
			for j := range g.Ops {
				before[j] = make([]bool, len(g.Ops))
				for _, e := range g.Edges {
					if e.To != j {
						continue
					}
					before[j][e.From] = true
					for i := range e.From {
						before[j][i] = before[j][i] || before[e.From][i]
					}
				}
				for i := range j {
					a, b := &g.Ops[i], &g.Ops[j]
					if !before[j][i] && (meet(a.Writes(), b.Writes()) || meet(a.Writes(), b.Reads()) || meet(a.Reads(), b.Writes())) {
						t.Fatalf("seed %d graph %d: operations %d and %d are not ordered", seed, gi, i, j)
					}
				}
			}
		}
	}
}

func meet(a, b []int) bool {
	return slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
}

// Few programs have memory across two mappings; these do.
func TestMemoryAcrossMappings(t *testing.T) {
	testenv.Build(t, "lib", "bin", "programs-engine")
	t.Setenv("LD_LIBRARY_PATH", testenv.Path(t, "build", "simulated"))
	r := &programs.Runner{Build: testenv.Path(t, "build"), Dir: t.TempDir()}
	var seeds []uint64
	for seed := uint64(1); len(seeds) < 4; seed++ {
		if plan := programs.New(seed); plan.Refused == "" && plan.Features["pointer: across two mappings"] {
			seeds = append(seeds, seed)
		}
	}
	out, err := r.Batch(t.Context(), seeds)
	if err != nil || out.Restored != len(seeds) {
		t.Errorf("%d of programs %d restored: %v, %v", out.Restored, seeds, out.Different, err)
	}
}
