package bench

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Times are the durations of one thing, measured again and again.
type Times []time.Duration

// Median returns the middle one.
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

// Alternate measures each of the functions rounds times, one after the other and round after round: what else the
// machine does meets all of them alike. A first round is not counted. A function that returns a duration above 0 has
// measured itself.
func Alternate(rounds int, functions ...func() time.Duration) []Times {
	out := make([]Times, len(functions))
	for round := -1; round < rounds; round++ {
		for i, f := range functions {
			began := time.Now()
			took := f()
			if took <= 0 {
				took = time.Since(began)
			}
			if round >= 0 {
				out[i] = append(out[i], took)
			}
		}
	}
	return out
}

// Processor returns the processor time that f takes, of all threads of the process: garbage collection of what f leaves
// counts, what other processes do to the machine hardly does.
func Processor(f func()) time.Duration {
	runtime.GC()
	before := processorTime()
	f()
	return processorTime() - before
}

func processorTime() time.Duration {
	var u syscall.Rusage
	// It cannot fail for the process itself.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Ratios divides a by b, round by round, and returns the median and the distance between the quartiles.
func Ratios(a, b Times) (median, spread float64) {
	var all Times
	for i := range a {
		all = append(all, time.Duration(1e9*float64(a[i])/float64(b[i])))
	}
	return float64(all.Median()) / 1e9, float64(all.quantile(0.75)-all.quantile(0.25)) / 1e9
}

// Reporter is a *testing.B. This package is part of the command medusa, which is to be free of package testing.
type Reporter interface {
	ReportMetric(value float64, unit string)
}

// Report adds median and spread to a benchmark's line: name-ns and name-spread-%.
func Report(b Reporter, name string, t Times) {
	b.ReportMetric(float64(t.Median()), name+"-ns")
	b.ReportMetric(100*t.Spread(), name+"-spread-%")
}

// ReportRatio adds the ratio of two medians of one run, and its spread over the rounds.
func ReportRatio(b Reporter, name string, x, y Times) {
	median, spread := Ratios(x, y)
	b.ReportMetric(median, name)
	b.ReportMetric(spread, name+"-spread")
}

// String shows the median and the spread.
func (t Times) String() string { return fmt.Sprintf("%v ± %.0f%%", t.Median(), 100*t.Spread()) }
