package memory

import (
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/restore/live"
)

// recordedSequence: #0 and #1 are the engine's, #0 is freed, #2 is the engine's, #3 belongs to the capture phase.
func recordedSequence() *graphir.Spec {
	return &graphir.Spec{
		Allocations: []graphir.Allocation{
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 100},
			{Kind: graphir.AllocPinned, Owner: graphir.OwnerEngine, Size: 200, Live: true},
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 300, Live: true},
			{Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 400, Live: true},
		},
		Sequence: []graphir.Step{{Alloc: 0}, {Alloc: 1}, {Free: true, Alloc: 0}, {Alloc: 2}, {Free: true, Alloc: 1}, {Alloc: 3}},
	}
}

func replayedAllocs(sizes ...uint64) []live.Alloc {
	kinds := []graphir.AllocKind{graphir.AllocDevice, graphir.AllocPinned, graphir.AllocDevice, graphir.AllocDevice}
	var out []live.Alloc
	for i, size := range sizes {
		out = append(out, live.Alloc{Addr: uint64(i+1) << 20, Size: size, Kind: uint32(kinds[i]), Live: 1})
	}
	return out
}

func TestComparePrefix(t *testing.T) {
	for _, row := range []struct {
		name   string
		steps  []int64
		allocs []live.Alloc
		want   string // part of the error; empty: none
	}{
		{"equal", []int64{0, 1, -1, 2}, replayedAllocs(100, 200, 300), ""},
		{"equal with the frees before the capture phase", []int64{0, 1, -1, 2, -2}, replayedAllocs(100, 200, 300), ""},
		{"other size", []int64{0, 1, -1, 2}, replayedAllocs(100, 200, 301), "step 3 was #2 (device, 300 bytes) when recorded, is #2 (device, 301 bytes) now"},
		{"other kind", []int64{0, 1}, []live.Alloc{{Size: 100, Kind: 1}, {Size: 200, Kind: 1}}, "step 1 was #1 (pinned, 200 bytes) when recorded, is #1 (device"},
		{"memory of another process", []int64{0, 1}, []live.Alloc{{Size: 100, Kind: 1}, {Size: 200, Kind: 9}}, "is #1 (ipc, 200 bytes) now"},
		{"other order of frees", []int64{0, 1, -2, 2}, replayedAllocs(100, 200, 300), "step 2 was free of #0 when recorded, is free of #1 now"},
		{"free instead of allocation", []int64{0, -1}, replayedAllocs(100), "step 1 was #1"},
		{"allocation instead of free", []int64{0, 1, 2}, replayedAllocs(100, 200, 300), "step 2 was free of #0 when recorded, is #2"},
		{"too short", []int64{0, 1, -1}, replayedAllocs(100, 200), "is missing now"},
		{"into the capture phase", []int64{0, 1, -1, 2, -2, 3}, replayedAllocs(100, 200, 300, 400), "step 5 was #3 (device, 400 bytes, capture phase)"},
		{"beyond the end", []int64{0, 1, -1, 2, -2, 3, 4}, replayedAllocs(100, 200, 300, 400), "step 5"},
		{"index without an entry", []int64{0, 1, -1, 2}, replayedAllocs(100, 200), "unknown to the allocation map"},
	} {
		checkSequence(t, row.name, comparePrefix(recordedSequence(), row.steps, row.allocs), row.want)
	}
}

func TestCompareWhole(t *testing.T) {
	for _, row := range []struct {
		name   string
		steps  []int64
		allocs []live.Alloc
		want   string
	}{
		{"equal", []int64{0, 1, -1, 2, -2, 3}, replayedAllocs(100, 200, 300, 400), ""},
		{"more after ready", []int64{0, 1, -1, 2, -2, 3, -4}, replayedAllocs(100, 200, 300, 400), ""},
		{"capture phase missing", []int64{0, 1, -1, 2}, replayedAllocs(100, 200, 300), "step 4 was free of #1 when recorded, is missing now"},
		{"capture phase of another size", []int64{0, 1, -1, 2, -2, 3}, replayedAllocs(100, 200, 300, 401), "step 5"},
	} {
		checkSequence(t, row.name, compareWhole(recordedSequence(), row.steps, row.allocs), row.want)
	}
}

// Frees with no allocation between them may come in any order, and those before the capture phase on either side of its beginning.
func TestFreesThatFollowEachOther(t *testing.T) {
	spec := recordedSequence()
	spec.Sequence = []graphir.Step{{Alloc: 0}, {Alloc: 1}, {Alloc: 2}, {Free: true, Alloc: 1}, {Free: true, Alloc: 0}, {Alloc: 3}}
	for _, row := range []struct {
		name  string
		steps []int64
		whole bool
		want  string
	}{
		{"as recorded", []int64{0, 1, 2, -2, -1}, false, ""},
		{"in another order", []int64{0, 1, 2, -1, -2}, false, ""},
		{"the first before the capture phase", []int64{0, 1, 2, -2}, false, ""},
		{"the second before the capture phase", []int64{0, 1, 2, -1}, false, ""},
		{"of something else", []int64{0, 1, 2, -3}, false, "step 5 was #3 (device, 400 bytes, capture phase) when recorded, is free of #2 now"},
		{"earlier", []int64{0, 1, -2, 2, -1}, false, "step 2 was #2"},
		{"in another order, whole", []int64{0, 1, 2, -1, -2, 3}, true, ""},
		{"one missing, whole", []int64{0, 1, 2, -1, 3}, true, "step 4 was free of #1 when recorded, is #3"},
	} {
		compare := comparePrefix
		if row.whole {
			compare = compareWhole
		}
		checkSequence(t, row.name, compare(spec, row.steps, replayedAllocs(100, 200, 300, 400)), row.want)
	}
}

func checkSequence(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var mismatch *sequenceError
	if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want a sequenceError with %q", name, err, want)
	}
}
