package interpose

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// exactRun has the output of build/test/exact: addresses in order, scratch addresses, and answers by name.
type exactRun struct {
	at, scratch []uint64
	answers     map[string]uint64
}

func exact(t *testing.T, c Config, args ...string) (exactRun, []trace.Record) {
	t.Helper()
	argv := append([]string{build(t, "build/test/exact")}, args...)
	var r result
	var recs []trace.Record
	c.ExtraEnv = append(c.ExtraEnv, "SIMGPU_LEAKS=1")
	if c.Mode == Record {
		recs, r = recordWithFaults(t, c, 0, simulated(t), argv...) // it frees memory while a capture forbids that
	} else if r = run(t, c, simulated(t), argv...); r.exit != 0 {
		t.Fatalf("exit %d\n%s%s", r.exit, r.stdout, r.stderr)
	}
	if !strings.Contains(r.stderr, "leaks: allocations=0 ") || !strings.Contains(r.stderr, " physical=0 ") {
		t.Errorf("memory is left after the context was reset: %s", r.stderr)
	}
	out := exactRun{answers: map[string]uint64{}}
	for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
		name, value, _ := strings.Cut(line, " ")
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case err != nil:
			t.Fatalf("line %q: %v", line, err)
		case name == "at":
			out.at = append(out.at, n)
		case name == "scratch":
			out.scratch = append(out.scratch, n)
		default:
			out.answers[name] = n
		}
	}
	return out, recs
}

// native has the answers of a process without a region. A region must not change them, but for "ipc": mapped memory has no handle.
var native = map[string]uint64{
	"contents": 1, "kept": 1, "gone": 1, "range": 1, "attributes": 1, "identity": 1, "retain": 1, "free-inside": 1, "free-twice": 1,
	"zero": 1, "too-much": 2, "waited": 1, "captured-alloc": 900, "relaxed-alloc": 0, "relaxed-free": 0, "captured-free": 900, "reset": 1,
	"ipc": 0,
}

func with(more map[string]uint64) map[string]uint64 {
	all := maps.Clone(native)
	maps.Copy(all, more)
	return all
}

func compareAnswers(t *testing.T, got exactRun, want map[string]uint64) {
	t.Helper()
	for name := range with(got.answers) {
		if v, ok := got.answers[name]; !ok || v != want[name] {
			t.Errorf("%s is %d (%v), want %d", name, v, ok, want[name])
		}
	}
}

// Equal sequences give equal addresses in every process, recorded or not. Allocations of trigger scopes in between do not count.
func TestExactAddressesRepeat(t *testing.T) {
	base := DefaultRegion.Base
	want := with(map[string]uint64{"state": 1, "base": base, "reason": 0, "placed": 0, "taken": 2, "outside": 801, "placed-again": 0,
		"ipc":            801,
		"placed-mapping": 0, "placed-in-reservation": 2, "placed-around-reservation": 2, "placed-behind-reservation": 0, "reservation-passes": 5,
		"next": 512, "forked": 2})
	recorded, recs := exact(t, Config{Mode: Record, Exact: DefaultRegion}, "1")
	compareAnswers(t, recorded, want)
	if e := of[*trace.Exact](recs); len(e) != 1 || e[0].Base != base || e[0].Size != DefaultRegion.Size {
		t.Errorf("recorded region %+v", e)
	}
	if l := of[*trace.ExactLimit](recs); len(l) != 1 || !strings.Contains(l[0].Reason, "cuIpcGetMemHandle") {
		t.Errorf("recorded limits %+v", l)
	}
	for i, a := range slices.Concat(recorded.at, recorded.scratch) {
		if a < base || a >= base+DefaultRegion.Size {
			t.Errorf("address %d, %#x, lies outside the region", i, a)
		}
	}
	replayed, _ := exact(t, Config{Mode: Replay, Exact: DefaultRegion}, "2")
	compareAnswers(t, replayed, want)
	if !slices.Equal(replayed.at, recorded.at) {
		t.Errorf("addresses\n%#x, recorded\n%#x", replayed.at, recorded.at)
	}
	if slices.ContainsFunc(recorded.scratch, func(a uint64) bool { return slices.Contains(recorded.at, a) }) {
		t.Error("memory of a trigger scope overlaps memory of the sequence")
	}
}

// No memory that may lie anywhere lies in the region: the addresses are held before the program begins.
func TestExactBaseIsHeld(t *testing.T) {
	base := fmt.Sprintf("%#x", DefaultRegion.Base)
	for _, tt := range []struct {
		c        Config
		occupied uint64
	}{{Config{Mode: Record, Exact: DefaultRegion}, 0}, {Config{Mode: Replay, Exact: DefaultRegion}, 0}, {Config{Mode: Record}, 1}} {
		got, _ := exact(t, tt.c, "1", base, "asked")
		if a := got.answers; a["occupied"] != tt.occupied || a["state"] != 1-tt.occupied {
			t.Errorf("%+v: occupied %d, state %d", tt.c, a["occupied"], a["state"])
		}
	}
}

// If the base is occupied all the same, a recording tries another one. A replay reports it and leaves memory to the driver.
func TestExactBaseIsTaken(t *testing.T) {
	base := fmt.Sprintf("%#x", DefaultRegion.Base)
	recorded, recs := exact(t, Config{Mode: Record, Exact: DefaultRegion}, "1", base, "taken")
	next := DefaultRegion.Base + DefaultRegion.Size
	if e := of[*trace.Exact](recs); len(e) != 1 || e[0].Base != next || recorded.answers["state"] != 1 {
		t.Errorf("recorded region %+v, want one at %#x", e, next)
	}
	replayed, _ := exact(t, Config{Mode: Replay, Exact: DefaultRegion}, "1", base, "taken")
	compareAnswers(t, replayed, with(map[string]uint64{"state": 2, "base": DefaultRegion.Base, "reason": 1, "occupied": 1}))
}

// A driver that refuses hints, by another address or by an error, leaves a process as it is without a region.
func TestExactHintsRefused(t *testing.T) {
	for _, how := range []string{"refuse", "fail"} {
		for _, mode := range []Mode{Record, Replay} {
			got, recs := exact(t, Config{Mode: mode, Exact: DefaultRegion, ExtraEnv: []string{"SIMGPU_VMM_HINTS=" + how}})
			want := with(map[string]uint64{"state": 2, "base": DefaultRegion.Base, "reason": 1})
			compareAnswers(t, got, want)
			if len(of[*trace.Exact](recs)) != 0 {
				t.Errorf("hints %s: a region was recorded", how)
			}
		}
	}
}

// With gaps, a region's places lie further apart: live allocations keep their order, and no distance stays the same.
func TestStretchedRegion(t *testing.T) {
	plain, _ := exact(t, Config{Mode: Record, Exact: DefaultRegion}, "1")
	_, a := exact(t, Config{Mode: Record, Exact: DefaultRegion}, "1")
	stretched, b := exact(t, Config{Mode: Record, Exact: DefaultRegion, GapSeed: 7}, "1")
	other, _ := exact(t, Config{Mode: Record, Exact: DefaultRegion, GapSeed: 8}, "1")
	if slices.Equal(stretched.at, plain.at) || slices.Equal(stretched.at, other.at) {
		t.Error("a seed does not matter")
	}
	type piece struct{ a, b, size uint64 }
	live := map[uint32]piece{}
	compared := 0
	stepsA, stepsB := memorySteps(a), memorySteps(b)
	for i := range min(len(stepsA), len(stepsB)) {
		made, isAlloc := stepsA[i].(*trace.Alloc)
		twin, twinIsAlloc := stepsB[i].(*trace.Alloc)
		if isAlloc != twinIsAlloc || isAlloc && (made.Size != twin.Size || made.Trigger != twin.Trigger) {
			break // the program allocates at a recorded address, which gaps have moved
		}
		if !isAlloc {
			delete(live, stepsA[i].(*trace.Free).ID)
			continue
		}
		if made.Trigger != 0 {
			continue
		}
		p := piece{made.Addr, twin.Addr, made.Size}
		for id, q := range live {
			compared++
			if (p.a < q.a) != (p.b < q.b) {
				t.Errorf("allocations %d and %d lie the other way round", id, made.ID)
			}
			if p.a-q.a == p.b-q.b {
				t.Errorf("allocations %d and %d keep their distance", id, made.ID)
			}
			if low, high := min(p.b, q.b), max(p.b, q.b); high-low <= map[bool]uint64{true: p.size, false: q.size}[low == p.b] {
				t.Errorf("allocations %d and %d touch", id, made.ID)
			}
		}
		live[made.ID] = p
	}
	if compared < 50 {
		t.Errorf("%d pairs compared", compared)
	}
}

func memorySteps(recs []trace.Record) (out []trace.Record) {
	for _, r := range recs {
		switch r := r.(type) {
		case *trace.Alloc:
			out = append(out, r)
		case *trace.Free:
			if r.Trigger == 0 {
				out = append(out, r)
			}
		}
	}
	return out
}
