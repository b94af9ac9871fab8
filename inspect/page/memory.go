package page

import (
	"fmt"
	"math"
	"strings"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/inspect"
)

// The uses of memory, in the order of the page and of its colours.
const (
	weights = iota
	kv
	named
	saved
	working
	temporary
	groups
)

var groupNames = [groups]string{"weights", "KV cache", "named inputs and outputs", "saved with the artifact", "other live memory", "freed before ready"}

// memory shows the allocation sequence: the memory that stays after each phase, every allocation, and the footprint over time.
type memory struct {
	Phases    []phase
	Groups    []legend
	Marks     []mark // one per allocation, or the largest of several neighbours
	Scale     []tick
	Captured  bool    // the capture phase made allocations
	Boundary  float64 // beginning of capture in the chart's units
	Footprint string  // points of a polyline
	Peak      uint64  // bytes, without the KV cache
	Count     int
}

type phase struct {
	Name, Note string
	Live       uint64 // bytes
	Parts      []part
}

type part struct {
	Name  string
	Class int
	Bytes uint64
	Count int
	Share float64 // of the phase's bytes
}

type mark struct {
	X, W, Y, H float64
	Class      int
	Tip        string
}

// The chart's size in its own units.
const (
	chartWidth, chartHeight = 1000.0, 150.0
	maxMarks                = 500
)

func newMemory(art *artifacts.Artifact, list inspect.Allocations) memory {
	m := memory{Count: len(list)}
	for class, name := range groupNames {
		m.Groups = append(m.Groups, legend{name, class})
	}
	for _, owner := range []graphir.Owner{graphir.OwnerEngine, graphir.OwnerGraph} {
		p := phase{Name: "until capture", Note: "the engine repeats these allocations"}
		if owner == graphir.OwnerGraph {
			p = phase{Name: "in capture", Note: "the restorer makes those that graphs need"}
		}
		p.Parts, p.Live = parts(list, owner.String())
		if len(p.Parts) > 0 {
			m.Phases = append(m.Phases, p)
		}
	}
	m.marks(list)
	m.footprint(art.Spec, list)
	return m
}

func groupOf(a *inspect.Allocation) int {
	switch {
	case !a.Live:
		return temporary
	case strings.Contains(a.Use, "kv"):
		return kv
	case strings.Contains(a.Use, "weight"):
		return weights
	case a.Use != "-":
		return named
	case a.Saved > 0:
		return saved
	}
	return working
}

// parts sums one owner's allocations by group. live is the number of their bytes that are not freed.
func parts(list inspect.Allocations, owner string) (out []part, live uint64) {
	var sums [groups]part
	for i := range list {
		if a := &list[i]; a.Owner == owner {
			g := groupOf(a)
			sums[g].Bytes += a.Size
			sums[g].Count++
			if g != temporary {
				live += a.Size
			}
		}
	}
	for g, p := range sums {
		if p.Count == 0 {
			continue
		}
		p.Name, p.Class = groupNames[g], g
		if g != temporary && live > 0 {
			p.Share = float64(p.Bytes) / float64(live)
		}
		out = append(out, p)
	}
	return out, live
}

// marks draws sizes on a logarithmic scale: a KV cache of gigabytes and a semaphore of four bytes both matter.
func (m *memory) marks(list inspect.Allocations) {
	if len(list) == 0 {
		return
	}
	largest := 1.0
	for i := range list {
		largest = max(largest, math.Log2(float64(list[i].Size)+1))
	}
	bucket := (len(list) + maxMarks - 1) / maxMarks
	w := chartWidth / float64((len(list)+bucket-1)/bucket)
	for start := 0; start < len(list); start += bucket {
		best := &list[start]
		for i := start; i < min(start+bucket, len(list)); i++ {
			if list[i].Size > best.Size {
				best = &list[i]
			}
		}
		h := max(1, chartHeight*math.Log2(float64(best.Size)+1)/largest)
		m.Marks = append(m.Marks, mark{
			X: w * float64(start/bucket), W: max(w-0.4, 0.4), Y: chartHeight - h, H: h, Class: groupOf(best),
			Tip: fmt.Sprintf("alloc#%d: %s, %s, %s", best.Index, inspect.Bytes(best.Size), groupNames[groupOf(best)], best.Owner),
		})
	}
	for power := 10.0; power <= largest; power += 10 {
		m.Scale = append(m.Scale, tick{chartHeight - chartHeight*power/largest, inspect.Bytes(1 << uint(power))})
	}
	for i := range list {
		if list[i].Owner == graphir.OwnerGraph.String() {
			m.Captured, m.Boundary = true, w*float64(i/bucket)
			break
		}
	}
}

// footprint computes the live memory after every step of the sequence, without the KV cache, which would flatten everything else.
func (m *memory) footprint(s *graphir.Spec, list inspect.Allocations) {
	live := make([]uint64, 0, len(s.Sequence))
	now := uint64(0)
	for _, step := range s.Sequence {
		if a := &list[step.Alloc]; groupOf(a) != kv {
			if step.Free {
				now -= a.Size
			} else {
				now += a.Size
			}
		}
		live = append(live, now)
		m.Peak = max(m.Peak, now)
	}
	if m.Peak == 0 {
		return
	}
	points := []string{fmt.Sprintf("0,%g", chartHeight)}
	bucket := (len(live) + maxMarks - 1) / maxMarks
	for start := 0; start < len(live); start += bucket {
		high := uint64(0)
		for _, v := range live[start:min(start+bucket, len(live))] {
			high = max(high, v)
		}
		y := chartHeight * (1 - float64(high)/float64(m.Peak))
		x0, x1 := chartWidth*float64(start)/float64(len(live)), chartWidth*float64(min(start+bucket, len(live)))/float64(len(live))
		points = append(points, fmt.Sprintf("%.1f,%.1f %.1f,%.1f", x0, y, x1, y))
	}
	m.Footprint = strings.Join(append(points, fmt.Sprintf("%g,%g", chartWidth, chartHeight)), " ")
}
