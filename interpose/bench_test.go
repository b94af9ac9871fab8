package interpose

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"medusa/internal/bench"
	"medusa/internal/testenv"
)

// startCalls are the hooked calls of a native start of a model of 7B class with 35 batch sizes, as the simulated GPU's log
// counts them. A restored start makes fewer.
var startCalls = map[string]float64{
	"cuLaunchKernel": 23330, "cuMemAlloc+cuMemFree": 1102, "cuEventCreate+cuEventDestroy": 0, "cuGraphKernelNodeSetParams": 0,
	"cuGraphInstantiate+cuGraphExecDestroy": 70,
}

// callCosts runs the program of calls, and returns the processor time of each per call.
func callCosts(b *testing.B, variables ...string) map[string]float64 {
	b.Helper()
	cmd := exec.Command(testenv.Path(b, "build", "stub", "calls"))
	cmd.Env = append(testenv.Simulated(b, variables...), "LD_LIBRARY_PATH="+testenv.Path(b, "build", "stub"))
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	costs := map[string]float64{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var name string
		var ns float64
		if _, err := fmt.Sscan(s.Text(), &name, &ns); err != nil {
			b.Fatalf("%s: %v", s.Text(), err)
		}
		costs[name] = ns
	}
	return costs
}

// BenchmarkReplayCall measures what a driver call costs more under the interposer in replay mode: per function, and for the
// calls of a start together.
func BenchmarkReplayCall(b *testing.B) {
	testenv.Build(b, "build/stub/calls", "build/lib/libmedusa_interpose.so")
	library := "LD_PRELOAD=" + testenv.Path(b, "build", "lib", "libmedusa_interpose.so")
	// In thousandths of a nanosecond.
	extra, mean := map[string]bench.Times{}, bench.Times{}
	for range 9 {
		native := callCosts(b)
		replay := callCosts(b, library, "MEDUSA_MODE=replay")
		total, calls := 0.0, 0.0
		for name, count := range startCalls {
			more := replay[name] - native[name]
			extra[name] = append(extra[name], time.Duration(1000*more))
			total += count * more
			calls += count
		}
		mean = append(mean, time.Duration(1000*total/calls))
	}
	for b.Loop() {
	}
	worst := time.Duration(0)
	for name, times := range extra {
		b.ReportMetric(float64(times.Median())/1000, "ns/"+strings.ReplaceAll(name, "+", "-"))
		worst = max(worst, times.Median())
	}
	calls := 0.0
	for _, count := range startCalls {
		calls += count
	}
	b.ReportMetric(float64(worst)/1000, "worst-ns/call")
	b.ReportMetric(float64(mean.Median())/1000, "mean-ns/call")
	b.ReportMetric(100*mean.Spread(), "mean-spread-%")
	b.ReportMetric(float64(mean.Median())*calls/1e6, "us/start")
}
