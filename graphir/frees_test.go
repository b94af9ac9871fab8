package graphir

import (
	"slices"
	"testing"
)

// alloc and free are steps of a sequence, numbered by the allocation.
func alloc(i uint32) Step { return Step{Alloc: i} }
func free(i uint32) Step  { return Step{Free: true, Alloc: i} }

func TestOrderFrees(t *testing.T) {
	in := []Step{free(9), alloc(10), free(3), free(1), free(2), alloc(11), free(5), free(4)}
	want := []Step{free(9), alloc(10), free(1), free(2), free(3), alloc(11), free(4), free(5)}
	if got := OrderFrees(in); !slices.Equal(got, want) {
		t.Errorf("ordered frees: %v, want %v", got, want)
	}
	if in[2] != free(3) {
		t.Error("the input was changed")
	}
}

func TestBegins(t *testing.T) {
	long := []Step{alloc(0), alloc(1), free(0), alloc(2), free(1), free(2), alloc(3)}
	for _, row := range []struct {
		name            string
		short           []Step
		inLong, inShort int
	}{
		{"nothing", nil, 0, 0},
		{"all", long, 7, 7},
		{"up to the frees", long[:4], 4, 4},
		{"the first free at the end", long[:5], 5, 5},
		{"the second free at the end", append(slices.Clone(long[:4]), free(2)), 6, 5},
		{"a free at the end that comes earlier", append(slices.Clone(long[:2]), free(0)), 3, 3},
		{"a free that is missing", []Step{alloc(0), alloc(1), alloc(2)}, 2, 2},
		{"one of two frees is missing", []Step{alloc(0), alloc(1), free(0), alloc(2), free(2), alloc(3)}, 4, 4},
		{"a free of something else at the end", append(slices.Clone(long[:4]), free(7)), 6, 4},
		{"more", append(slices.Clone(long), free(3)), 7, 7},
	} {
		inLong, inShort := Begins(long, row.short, func(a, b Step) bool { return a == b })
		if inLong != row.inLong || inShort != row.inShort {
			t.Errorf("%s: %d of long and %d of short, want %d and %d", row.name, inLong, inShort, row.inLong, row.inShort)
		}
	}
}
