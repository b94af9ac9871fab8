// Package measure summarizes durations that were measured repeatedly.
//
// In: rounds of durations. Out: medians and spreads, of one series or of the ratio of two. No function fails.
package measure

import (
	"fmt"
	"slices"
	"time"
)

// Times are repeated measurements of one duration.
type Times []time.Duration

// Median returns the median.
func (t Times) Median() time.Duration { return t.quantile(0.5) }

// Spread returns the distance between the quartiles as a share of the median.
func (t Times) Spread() float64 {
	return float64(t.quantile(0.75)-t.quantile(0.25)) / float64(t.Median())
}

func (t Times) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + time.Duration((at-float64(low))*float64(sorted[high]-sorted[low]))
}

// Ratios divides a by b, round by round, and returns the median and the distance between the quartiles.
func Ratios(a, b Times) (median, spread float64) {
	var all Times
	for i := range a {
		all = append(all, time.Duration(1e9*float64(a[i])/float64(b[i])))
	}
	return float64(all.Median()) / 1e9, float64(all.quantile(0.75)-all.quantile(0.25)) / 1e9
}

// Difference subtracts b from a, round by round, and returns the median: a machine that becomes slower makes both slower.
func Difference(a, b Times) time.Duration {
	var all Times
	for i := range a {
		all = append(all, a[i]-b[i])
	}
	return all.Median()
}

// String shows the median and the spread.
func (t Times) String() string { return fmt.Sprintf("%v ± %.0f%%", t.Median(), 100*t.Spread()) }
