package bench

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"medusa/internal/measure"
)

// Alternate measures each of the functions rounds times, one after the other and round after round: other work of the
// machine meets all of them alike. A first round is not counted. A function that returns a duration above 0 has
// measured itself.
func Alternate(rounds int, functions ...func() time.Duration) []measure.Times {
	out := make([]measure.Times, len(functions))
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

// Processor returns the processor time that f takes, of all threads of the process: collecting the garbage of f
// counts, and the work of other processes hardly does.
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

// Report adds median and spread to a benchmark's line: name-ns and name-spread-%.
func Report(b *testing.B, name string, t measure.Times) {
	b.ReportMetric(float64(t.Median()), name+"-ns")
	b.ReportMetric(100*t.Spread(), name+"-spread-%")
}

// ReportRatio adds the ratio of two medians of one run, and its spread over the rounds.
func ReportRatio(b *testing.B, name string, x, y measure.Times) {
	median, spread := measure.Ratios(x, y)
	b.ReportMetric(median, name)
	b.ReportMetric(spread, name+"-spread")
}
