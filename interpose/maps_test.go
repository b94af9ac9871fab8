package interpose

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

func addresses(t *testing.T, r result) []int64 {
	t.Helper()
	var out []int64
	for line := range strings.Lines(r.stdout) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "at "); ok {
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

// With gaps, the distance of any two neighbours changes. The recorded sequence stays the same and shows no gaps, and gaps never
// take much memory. The fake driver's addresses do not vary by themselves.
func TestGapsMoveAllocationsAgainstEachOther(t *testing.T) {
	program := build(t, "build/test/allocs")
	var runs [][]int64
	for i, seed := range []uint64{0, 0, 1, 2} {
		log := filepath.Join(t.TempDir(), "log")
		recs, r := record(t, Config{GapSeed: seed, ExtraEnv: []string{"FAKE_LOG=" + log}}, 0, fakeDir(t), program)
		at := addresses(t, r)
		allocs := of[*trace.Alloc](recs)
		if len(at) != 12 || len(allocs) != 12 {
			t.Fatalf("run %d: %d addresses, %d records", i, len(at), len(allocs))
		}
		for k, a := range allocs {
			if a.Addr != uint64(at[k]) || a.ID != uint32(k) {
				t.Errorf("run %d: record %+v, address %d", i, a, at[k])
			}
		}
		if p := recs[0].(*trace.Process); p.GapSeed != seed {
			t.Errorf("run %d: seed %d recorded, want %d", i, p.GapSeed, seed)
		}
		calls := readFile(t, log)
		made, freed := strings.Count(calls, "cuMemAlloc_v2\n")-12, strings.Count(calls, "cuMemFree_v2\n")
		if seed == 0 && made+freed != 0 {
			t.Errorf("run %d: %d gaps made, %d freed", i, made, freed)
		}
		// A twentieth of the fake device's 1 GiB is 25 pages.
		if seed != 0 && made-freed > 25+12*3 {
			t.Errorf("run %d: %d gaps made and only %d freed", i, made, freed)
		}
		runs = append(runs, at)
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Fatal("addresses jitter without gaps: this test proves nothing")
	}
	for _, pair := range [][2]int{{0, 2}, {0, 3}} {
		a, b := runs[pair[0]], runs[pair[1]]
		for i := 1; i < len(a); i++ {
			if a[i]-a[i-1] == b[i]-b[i-1] {
				t.Errorf("runs %v: allocations %d and %d keep their distance", pair, i-1, i)
			}
		}
	}
	if slices.Equal(runs[2], runs[3]) {
		t.Error("two seeds give the same addresses")
	}
}

// Gaps separate every kind of memory, including memory that a process allocates while it captures. The captured graph does not
// change.
func TestGapsOfEveryKind(t *testing.T) {
	program, driver := build(t, "build/test/gaps"), simulated(t)
	for _, how := range []string{"device", "pinned", "page-locked", "stream", "pool", "captured device", "captured pinned", "captured large"} {
		t.Run(how, func(t *testing.T) {
			distances := func(seed uint64) (out []int64) {
				recs, r := record(t, Config{GapSeed: seed, ExtraEnv: []string{"SIMGPU_SEED=1"}}, 0, driver, program, how)
				at := addresses(t, r)
				if allocs := of[*trace.Alloc](recs); len(at) != 8 || len(allocs) != 8 {
					t.Fatalf("seed %d: %d addresses, %d records", seed, len(at), len(allocs))
				}
				if nodes := printed(t, r)["nodes"]; nodes != 0 {
					t.Errorf("seed %d: the captured graph has %d nodes", seed, nodes)
				}
				slices.Sort(at) // neighbours in memory
				for i := 1; i < len(at); i++ {
					out = append(out, at[i]-at[i-1])
				}
				return out
			}
			closest := slices.Min(distances(0)) // other mappings of the process make some holes
			moved := func(d []int64) (n int) {
				for _, v := range d {
					if v > closest {
						n++
					}
				}
				return n
			}
			first, second := distances(1), distances(2)
			if moved(first) < 5 || moved(second) < 5 || slices.Equal(first, second) {
				t.Errorf("distances %v and %v with gaps, down to %d without", first, second, closest)
			}
			for i, d := range first {
				if d <= 512 {
					t.Errorf("pieces %d and %d touch (%v)", i, i+1, first)
				}
			}
		})
	}
}

// A module's variables lie among small allocations, and without gaps would touch the one before them.
func TestGapsBeforeModules(t *testing.T) {
	program, driver := build(t, "build/test/gaps"), simulated(t)
	touching := func(seed uint64) (n int) {
		_, r := record(t, Config{GapSeed: seed, ExtraEnv: []string{"SIMGPU_SEED=1"}}, 0, driver, program, "pool module")
		at := addresses(t, r)
		if len(at) != 16 {
			t.Fatalf("seed %d: %d addresses", seed, len(at))
		}
		slices.Sort(at)
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] == 512 {
				n++
			}
		}
		return n
	}
	if touching(0) == 0 {
		t.Error("nothing touches without gaps: the test cannot tell")
	}
	for seed := uint64(1); seed < 4; seed++ {
		if n := touching(seed); n > 0 {
			t.Errorf("seed %d: %d of 16 pieces touch the one before", seed, n)
		}
	}
}

// Kinds, sizes, liveness and order of every call that allocates or frees memory. The trace and the maps agree, and replay mode
// has the same maps without a trace.
func TestAllocationMaps(t *testing.T) {
	program, driver := build(t, "build/test/allocs"), simulated(t)
	recs, recorded := record(t, Config{}, 0, driver, program, "maps")
	replayed := run(t, Config{Mode: Replay}, driver, program, "maps")
	if replayed.exit != 0 || replayed.stdout != recorded.stdout {
		t.Errorf("replay mode: exit %d, %q\nrecord mode: %q\n%s", replayed.exit, replayed.stdout, recorded.stdout, replayed.stderr)
	}
	pitch := printed(t, recorded)["pitch"]
	type kindSize struct {
		kind trace.AllocKind
		size uint64
	}
	want := []kindSize{}
	for _, size := range []uint64{256, 512, 4096, 4 << 20, 256, 100000, 8 << 20, 2 << 20, 64, 700, 1 << 20, 3 << 20} {
		want = append(want, kindSize{trace.AllocDevice, size})
	}
	want = append(want, kindSize{trace.AllocPitch, 10 * pitch}, kindSize{trace.AllocManaged, 300}, kindSize{trace.AllocPinned, 400},
		kindSize{trace.AllocPinned, 500}, kindSize{trace.AllocRegistered, 8192}, kindSize{trace.AllocAsync, 600})
	var got []kindSize
	live := map[uint32]bool{}
	var lines []string
	sequence := "sequence"
	for _, rec := range recs {
		switch rec := rec.(type) {
		case *trace.Alloc:
			got = append(got, kindSize{rec.Kind, rec.Size})
			live[rec.ID] = true
			sequence += fmt.Sprintf(" %d", rec.ID)
		case *trace.Free:
			live[rec.ID] = false
			sequence += fmt.Sprintf(" %d", -int64(rec.ID)-1)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %v\nwant %v", got, want)
	}
	for i, a := range got {
		alive := 0
		if live[uint32(i)] {
			alive = 1
		}
		lines = append(lines, fmt.Sprintf("alloc %d kind %d size %d live %d phase 0", i, a.kind, a.size, alive))
	}
	if want := "sequence 0 1 2 3 4 5 6 7 8 9 10 11 -2 12 13 14 15 16 17 -18 -17 -15"; sequence != want {
		t.Errorf("trace: %s, want %s", sequence, want)
	}
	for _, line := range append(lines, sequence, "count 18", "out-of-range -1") {
		if !strings.Contains(replayed.stdout, line+"\n") {
			t.Errorf("no %q in\n%s", line, replayed.stdout)
		}
	}
}

// Trigger scopes count launches and keep their allocations out of the sequence. Modules have their identities. The player runs a
// program and names the call that fails.
func TestReplayMode(t *testing.T) {
	r := run(t, Config{Mode: Replay}, simulated(t), build(t, "build/test/trigger"))
	if r.exit != 0 {
		t.Fatalf("exit %d\n%s%s", r.exit, r.stdout, r.stderr)
	}
	got := printed(t, r)
	for name, want := range map[string]uint64{
		"allocs": 1, "steps": 1, "launches": 2, "functions": 1, "add_one": 1,
		"modules": 2, "handle": 1, "unloaded": 0, "unloaded-again": 1,
		"played": 8, "eighth": 1, "rc": 1, "failed": 3, "rc9": 1, "failed9": 0,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if got["size"] < 1000 || got["offset"] == 0 || !strings.Contains(r.stdout, "build-id ") || strings.Contains(r.stdout, "build-id \n") {
		t.Errorf("module identity:\n%s", r.stdout)
	}
	image := readFile(t, "../build/test/trigger")[got["offset"]:][:got["size"]]
	if hash := fmt.Sprintf("hash %x\n", sha256.Sum256([]byte(image))); !strings.Contains(r.stdout, hash) || got["unhashed"] != 0 {
		t.Errorf("no %q in\n%s", hash, r.stdout)
	}
}

// Record mode marks trigger scopes, so that a comparison of runs can leave them out.
func TestTriggerScopesInTheTrace(t *testing.T) {
	recs, _ := record(t, Config{}, 0, simulated(t), build(t, "build/test/trigger"))
	var story []string
	for _, rec := range recs {
		switch rec := rec.(type) {
		case *trace.Alloc:
			story = append(story, fmt.Sprintf("alloc %d/%d", rec.ID, rec.Trigger))
		case *trace.Free:
			story = append(story, fmt.Sprintf("free %d/%d", rec.ID, rec.Trigger))
		}
	}
	if want := []string{"alloc 0/0", "alloc 0/1", "free 0/1", "alloc 1/0"}; !slices.Equal(story, want) {
		t.Errorf("%q, want %q", story, want)
	}
	if got := len(of[*trace.Unload](recs)); got != 1 {
		t.Errorf("%d unloads", got)
	}
}

// The marks of an engine, and the bytes that are contents at "ready".
func TestMarksAndContents(t *testing.T) {
	recs, _ := record(t, Config{ExitAtReady: true}, 0, simulated(t), build(t, "build/test/phases"))
	var phases []string
	for _, p := range of[*trace.Phase](recs) {
		phases = append(phases, p.Name)
	}
	if want := []string{"structure", "warmup", "capture", "ready"}; !slices.Equal(phases, want) {
		t.Errorf("phases %q, want %q", phases, want)
	}
	tensors := of[*trace.Tensor](recs)
	if len(tensors) != 2 {
		t.Fatalf("%d tensors", len(tensors))
	}
	if w := tensors[0]; w.Name != "w" || w.Role != 1 || w.Dtype != 1 || !slices.Equal(w.Shape, []int64{32, 32}) || w.Size != 4096 {
		t.Errorf("tensor %+v", w)
	}
	if in := tensors[1]; in.Addr != tensors[0].Addr+64 || in.Fill != 1 || in.Lo != -1 || in.Hi != 9 || len(in.Shape) != 1 {
		t.Errorf("tensor %+v", in)
	}
	if id := of[*trace.Identity](recs); len(id) != 1 || id[0].Key != "model.config" || id[0].Value != "sha256:12" {
		t.Errorf("identity %+v", id)
	}
	if e := of[*trace.Elastic](recs); len(e) != 1 || e[0].Least != 8 || e[0].Block != 9 {
		t.Errorf("elastic KV caches: %+v", e)
	}
	if kv := of[*trace.KV](recs); len(kv) != 1 || kv[0].KVBytes != 1 || kv[0].PeakForward != 5 || kv[0].Utilization != 0.9 || kv[0].ProfileTokens != 6 || kv[0].Workspace != 7 {
		t.Errorf("kv %+v", kv)
	}

	// Allocation 1 is the pool with two live blocks, and 2 is unmarked. 0 is the engine's, 3 was freed, and 4 took its place. 5
	// and 6 are mappings with a live block across their boundary.
	var ranges []string
	sizes := map[uint32]uint64{}
	for _, c := range of[*trace.Content](recs) {
		for _, b := range c.Data {
			if b != byte(c.Alloc) {
				t.Fatalf("allocation %d holds %d", c.Alloc, b)
			}
		}
		if c.Alloc == 1 {
			ranges = append(ranges, fmt.Sprintf("%d+%d", c.Offset, len(c.Data)))
		}
		if c.Alloc == 2 && c.Offset != sizes[2] {
			t.Errorf("a piece at %d, want %d", c.Offset, sizes[2])
		}
		sizes[c.Alloc] += uint64(len(c.Data))
	}
	if want := []string{"512+1024", "8192+2048"}; !slices.Equal(ranges, want) {
		t.Errorf("contents of the pool %v, want its live blocks %v", ranges, want)
	}
	if len(sizes) != 5 || sizes[2] != 3<<20 || sizes[4] != 4096 || sizes[5] != 512 || sizes[6] != 1024 {
		t.Errorf("bytes by allocation %v", sizes)
	}

	functions := of[*trace.Function](recs)
	if len(functions) != 2 || len(functions[0].Attrs) != 0 || !slices.Equal(functions[1].Attrs, []trace.FunctionAttr{{ID: 8, Value: 65536}}) {
		t.Errorf("functions %+v, want a second one with the attribute set in between", functions)
	}
	if a := of[*trace.FuncAttr](recs); len(a) != 2 || a[0].ID != 8 || a[0].Value != 65536 || a[0].IsKernel != 0 {
		t.Errorf("func_attr %+v", a)
	}
}

// An engine looks up the marks with dlsym. Without Medusa it runs as before.
func TestProgramsRunWithoutMedusa(t *testing.T) {
	for program, want := range map[string]int{"graph": 0, "phases": 9} {
		cmd, err := Command(t.Context(), underTest(t, Config{Mode: Replay}), []string{build(t, "build/test/"+program)})
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(slices.DeleteFunc(cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "LD_PRELOAD=") }), "LD_LIBRARY_PATH="+simulated(t))
		if r := wait(t, cmd); r.exit != want {
			t.Errorf("%s: exit %d, want %d: %s", filepath.Base(program), r.exit, want, r.stderr)
		}
	}
}

// Threads allocate and free at once, and the trace has one order in which every address has one owner at a time.
func TestThreadsAreOrdered(t *testing.T) {
	for _, region := range []Region{{}, DefaultRegion} {
		threadsAreOrdered(t, Config{Exact: region})
	}
}

func threadsAreOrdered(t *testing.T, c Config) {
	t.Helper()
	recs, r := record(t, c, 0, simulated(t), build(t, "build/test/threads"))
	const allocs = 4 * 10000
	if got := printed(t, r)["allocs"]; got != allocs {
		t.Errorf("%d allocations in the map, want %d", got, allocs)
	}
	owner := map[uint64]uint32{}
	perThread := map[uint32]int{}
	reused, next := 0, uint32(0)
	seen := map[uint64]bool{}
	for _, rec := range recs {
		switch rec := rec.(type) {
		case *trace.Alloc:
			if o, taken := owner[rec.Addr]; taken {
				t.Fatalf("record %d: allocation %d overlaps live allocation %d", rec.Order, rec.ID, o)
			}
			if rec.ID != next {
				t.Fatalf("record %d: allocation %d, want %d", rec.Order, rec.ID, next)
			}
			next++
			if seen[rec.Addr] {
				reused++
			}
			owner[rec.Addr], seen[rec.Addr] = rec.ID, true
			perThread[rec.Thread]++
		case *trace.Free:
			if o, taken := owner[rec.Addr]; !taken || o != rec.ID {
				t.Fatalf("record %d: free of %d, which does not live there", rec.Order, rec.ID)
			}
			delete(owner, rec.Addr)
		}
	}
	if next != allocs || len(owner) != 0 || reused == 0 || len(perThread) != 4 {
		t.Errorf("%d allocations, %d live, %d reused addresses, by thread %v", next, len(owner), reused, perThread)
	}
}
