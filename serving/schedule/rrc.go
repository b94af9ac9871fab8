package schedule

import (
	"math"
	"slices"
)

// rrc is the required request count of Torpor §5.1: the number of consecutive requests that must meet the deadline until a share
// p of all requests does, if m of the n served so far did. If it is zero or less, the function complies.
func rrc(p float64, n, m int) float64 {
	return (p*float64(n) - float64(m)) / (1 - p)
}

// split divides functions into Torpor's two groups (appendix A.3): sorted by RRC, the longest prefix whose positive
// counts sum to at most alpha times the total is the high group. It returns a flag per function.
func split(rrc []float64, alpha float64) (high []bool) {
	order := make([]int, len(rrc))
	total := 0.0
	for i, r := range rrc {
		order[i] = i
		total += math.Max(r, 0)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case rrc[a] < rrc[b]:
			return -1
		case rrc[a] > rrc[b]:
			return 1
		}
		return 0
	})
	high = make([]bool, len(rrc))
	sum := 0.0
	for _, i := range order {
		sum += math.Max(rrc[i], 0)
		// With alpha 1, rounding must not exclude the last function.
		if sum > alpha*total*(1+1e-12) {
			break
		}
		high[i] = true
	}
	return high
}

// alphaTuner is Algorithm 2 of Torpor: alpha grows while the share of complying functions rises and shrinks while it falls.
type alphaTuner struct {
	alpha     float64
	step      float64 // s, 2 in the paper
	threshold float64 // 0.04 in the paper
	least     float64 // floor: below it, alpha could never recover while the ratio stays flat
	last      float64
	seen      bool
}

// observe adjusts alpha to the ratio of complying functions in the period that has just ended.
func (t *alphaTuner) observe(ratio float64) {
	change := ratio - t.last
	if !t.seen {
		change = 0
	}
	t.last, t.seen = ratio, true
	switch {
	case change > t.threshold:
		t.alpha = math.Min(t.alpha*t.step, 1)
	case change < -t.threshold:
		t.alpha = math.Max(t.alpha/t.step, t.least)
	}
}
