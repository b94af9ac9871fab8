package compile

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// within demands that fn takes no more processor time than a bound of the whole program, which is far above its present time and
// far below its time if a list is searched for every word.
func within(t *testing.T, bound time.Duration, fn func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	fn()
	took := used() - before
	t.Logf("%v", took)
	if took > bound {
		t.Errorf("it took %v of processor time, more than %v", took, bound)
	}
}

// recordings makes both runs.
func recordings(t *testing.T, run func(tp *tape, at place)) (a, b *recording.Recording) {
	t.Helper()
	ta, tb := newTape(1), newTape(2)
	run(ta, placeA)
	run(tb, placeB)
	return ta.recording(t), tb.recording(t)
}

// A graph is embedded by one node, and recorded before the graph that this node is of. Otherwise compiling might never end.
func TestGraphsThatEmbedThemselves(t *testing.T) {
	graph := func(tp *tape, id uint32, children ...uint32) {
		tp.add(&trace.Graph{ID: id, Handle: 7, Nodes: uint32(max(1, len(children)))})
		for _, c := range children {
			tp.node++
			tp.add(&trace.Child{Graph: id, Node: tp.node, Child: c})
		}
		if len(children) == 0 {
			tp.node++
			tp.add(&trace.Empty{Graph: id, Node: tp.node})
		}
	}
	chain := func(depth uint32) func(tp *tape) {
		return func(tp *tape) {
			graph(tp, 0)
			for id := range depth {
				graph(tp, id+1, id)
			}
			tp.add(&trace.Exec{Graph: depth})
		}
	}
	for _, tt := range []struct {
		name, want string
		run        func(tp *tape)
	}{
		{"itself", "graph 0 embeds graph 0, which was not recorded before it", func(tp *tape) {
			graph(tp, 0, 0)
			tp.add(&trace.Exec{})
		}},
		{"doubling", "graph 0 is embedded by a second node", func(tp *tape) {
			graph(tp, 0)
			for id := range uint32(12) {
				graph(tp, id+1, id, id)
			}
			tp.add(&trace.Exec{Graph: 12})
		}},
		{"a number given twice", "graph 1 was recorded before", func(tp *tape) {
			graph(tp, 1)
			graph(tp, 2, 1)
			graph(tp, 1, 2)
			tp.add(&trace.Exec{Graph: 1})
		}},
		{"deep", fmt.Sprintf("graphs are embedded in each other more than %d times", graphir.MaxNesting), chain(graphir.MaxNesting + 1)},
		{"deep enough", "", chain(graphir.MaxNesting)},
		{"two of their own", "", func(tp *tape) {
			graph(tp, 0)
			graph(tp, 1)
			graph(tp, 2, 0, 1)
			tp.add(&trace.Exec{Graph: 2})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tp := newTape(1)
			tp.phase("capture")
			tt.run(tp)
			tp.phase("ready")
			r, err := recording.Read(tp.file(t, true))
			if tt.want == "" {
				if err == nil {
					_, err = proven(r, r)
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
			var bad *recording.Error
			if !errors.As(err, &bad) || !strings.Contains(bad.Reason, tt.want) {
				t.Fatalf("got %v, want a recording refused with %q", err, tt.want)
			}
		})
	}
}

// A capture in which memory comes and goes takes one step a change, not a list of all memory a moment.
func TestManyMomentsOfMuchMemory(t *testing.T) {
	const allocations, moments = 30_000, 1000
	a, b := recordings(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		for i := range allocations {
			tp.alloc(at(i), 4096)
		}
		tp.phase("capture")
		var nodes []trace.Record
		for i := range moments {
			k := tp.kernel(0, at(moments+i)+8)
			nodes = append(nodes, k)
			tp.add(&trace.Moment{Graph: 7, Nodes: []uint64{k.Node}})
			tp.free(uint32(i))
		}
		tp.capture("g", 1, nodes...)
		tp.phase("ready")
	})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spec, err := proven(a, b)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 100 {
		t.Errorf("compiling took %d MiB", mib)
	}
	for i, n := range spec.Graphs[0].Nodes {
		if f := n.Kernel().Relocations; len(f) != 1 || int(f[0].Pointer.Index) != moments+i || f[0].Pointer.Offset != 8 {
			t.Fatalf("node %d: pointers %v", i, f)
		}
	}
}

// Nodes whose moments go back and forth cost a step for each change in between, up to a bound.
func TestMomentsInNoOrder(t *testing.T) {
	tp := newTape(1)
	tp.function(0, trace.ModuleModule, "k", 8)
	early, late := tp.kernel(0, 1), tp.kernel(0, 1)
	tp.add(&trace.Moment{Graph: 7, Nodes: []uint64{early.Node}})
	for i := range 100 {
		tp.free(tp.alloc(placeA(i), 4096))
	}
	tp.capture("g", 1, late, early, tp.kernel(0, 1))
	tp.phase("ready")
	r := tp.recording(t)
	p, err := proverAt(addresses{run: own(r)}, addresses{run: own(r)}, math.MaxUint64, math.MaxUint64, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.steps() != 400 {
		t.Fatalf("%d steps to the end of both runs, want 400", p.steps())
	}
	w, err := r.Walk()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	body, err := w.To(r.Graphs[0])
	if err != nil {
		t.Fatal(err)
	}
	c := &graphCompiler{shared: &shared{prover: p}, ga: body, gb: body, label: "g"}
	for i, want := range []int{400, 800, 1200} {
		if _, err := c.proverOf(i); err != nil || p.steps() != want {
			t.Errorf("node %d: %d steps in all, want %d: %v", i, p.steps(), want, err)
		}
	}
	p.a.steps = maxSteps
	var refused *RefusedError
	if _, err := c.proverOf(0); !errors.As(err, &refused) || refused.Graph != "g" {
		t.Errorf("after %d steps: %v", p.steps(), err)
	}
}

func TestManyBlocksWithManyPointers(t *testing.T) {
	const blocks, pointers = 40_000, 8_000
	a, b := recordings(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		tp.alloc(at(0), blocks*512)
		for i := range blocks {
			tp.add(&trace.Block{Addr: at(0) + uint64(i)*512, Size: 512, Live: 1})
		}
		tp.phase("capture")
		var nodes []trace.Record
		for i := range pointers {
			nodes = append(nodes, tp.kernel(0, at(0)+uint64(blocks-1-i)*512))
		}
		tp.capture("g", 1, nodes...)
		tp.phase("ready")
	})
	within(t, 5*time.Second, func() {
		if _, err := proven(a, b); err != nil {
			t.Error(err)
		}
	})
}

func TestManyVariables(t *testing.T) {
	const variables = 30_000
	a, b := recordings(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		for i := range variables {
			tp.add(&trace.Global{Module: 0, Name: fmt.Sprintf("variable_%d", i), Addr: at(0) + uint64(i)*16, Size: 8})
		}
		tp.phase("capture")
		var nodes []trace.Record
		for i := range variables / 5 {
			nodes = append(nodes, tp.kernel(0, at(0)+uint64(i)*16))
		}
		tp.capture("g", 1, nodes...)
		tp.phase("ready")
		for i := range variables {
			tp.add(&trace.GlobalData{Module: 0, Name: fmt.Sprintf("variable_%d", i), Data: []byte{1, 2, 3, 4, 5, 6, 7, byte(i)}})
		}
	})
	within(t, 3*time.Second, func() {
		spec, err := proven(a, b)
		if err != nil {
			t.Error(err)
			return
		}
		if len(spec.Contents) != variables {
			t.Errorf("%d contents", len(spec.Contents))
		}
		known := variablesOf(spec)
		if unsaved, found := known.unsaved[0]; found {
			t.Errorf("variable %s is not saved", unsaved)
		}
	})
}
