package interpose

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/internal/measure"
	"medusa/internal/test/bench"
	"medusa/internal/test/testenv"
	"medusa/restore/status"
)

// startCalls counts the hooked calls of a native start of a 7B-class model with 35 batch sizes. Calls that the program of calls
// makes are counted under their names, and all others under "". A restored start makes fewer.
func startCalls(b *testing.B) map[string]float64 {
	b.Helper()
	hooked := map[string]string{} // function: name
	library, err := elf.Open(testenv.Path(b, "build", "lib", "libmedusa_interpose.so"))
	if err != nil {
		b.Fatal(err)
	}
	defer library.Close()
	symbols, err := library.DynamicSymbols()
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && strings.HasPrefix(s.Name, "cu") {
			hooked[s.Name] = ""
		}
	}
	for name := range callCosts(b) {
		for function := range strings.SplitSeq(name, "+") {
			hooked[function], hooked[function+"_v2"] = name, name
		}
	}
	log := filepath.Join(b.TempDir(), "calls")
	cmd := exec.Command(testenv.Path(b, "build", "reference"), "run", "--preset", "llama2-7b", "--batches", "1:2")
	cmd.Env = testenv.Simulated(b, "SIMGPU_COMPUTE=off", "SIMGPU_MEMORY=40G", "SIMGPU_CALL_LOG="+log)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		b.Fatal(err)
	}
	counts := map[string]float64{}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Split(line, "\t"); len(fields) > 3 {
			if name, is := hooked[fields[3]]; is {
				counts[name]++
			}
		}
	}
	return counts
}

// callCosts runs the program of calls and returns the processor time of each function per call.
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

// BenchmarkRecord compares starts with and without the recorder on the simulated GPU, in turns: the stage capture of a 7B-class
// model, and the processor time of the whole start. The simulated driver does almost no work, so the ratio is far higher than on
// a GPU, where capturing a node costs many times as much. The recorder's time per node is the same on both.
func BenchmarkRecord(b *testing.B) {
	testenv.Build(b)
	dir := b.TempDir()
	state := filepath.Join(dir, "status")
	var captures, processor [2]measure.Times
	nodes := 0
	for round := range 9 {
		for k, variables := range [][]string{nil, {"MEDUSA_MODE=record", "MEDUSA_TRACE=" + filepath.Join(dir, fmt.Sprint(round)),
			"LD_PRELOAD=" + testenv.Path(b, "build", "lib", "libmedusa_interpose.so")}} {
			cmd := exec.Command(testenv.Path(b, "build", "reference"), "run", "--preset", "llama2-7b", "--batches", "1:2", "-o", "json")
			cmd.Env = append(testenv.Simulated(b, "SIMGPU_COMPUTE=off", "SIMGPU_MEMORY=40G", "MEDUSA_STATUS="+state), variables...)
			out, err := cmd.Output()
			if err != nil {
				b.Fatal(err)
			}
			var ran struct{ Nodes int }
			st, err := status.Read(state)
			if err == nil {
				err = json.Unmarshal(out, &ran)
			}
			if err != nil {
				b.Fatal(err)
			}
			nodes = ran.Nodes
			processor[k] = append(processor[k], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			for i, p := range st.Phases[:len(st.Phases)-1] {
				if p.Name == "capture" {
					captures[k] = append(captures[k], time.Duration((st.Phases[i+1].Began-p.Began)*1e9))
				}
			}
		}
	}
	for b.Loop() {
	}
	var more measure.Times
	for i := range processor[0] {
		more = append(more, processor[1][i]-processor[0][i])
	}
	bench.ReportRatio(b, "simulated-capture", captures[1], captures[0])
	b.ReportMetric(float64(more.Median())/float64(nodes), "cpu-ns/node")
	b.ReportMetric(100*more.Spread(), "cpu-spread-%")
}

// BenchmarkReplayCall measures the extra cost of a driver call under the interposer in replay mode: per function, and for all
// calls of a start together. Functions that are not measured count as the most expensive one.
func BenchmarkReplayCall(b *testing.B) {
	testenv.Build(b, "lib", "bin", "build/stub/calls")
	library := "LD_PRELOAD=" + testenv.Path(b, "build", "lib", "libmedusa_interpose.so")
	counts, calls := startCalls(b), 0.0
	for _, count := range counts {
		calls += count
	}
	// In thousandths of a nanosecond.
	extra, mean := map[string]measure.Times{}, measure.Times{}
	for range 9 {
		native := callCosts(b)
		replay := callCosts(b, library, "MEDUSA_MODE=replay")
		total, dearest := 0.0, 0.0
		for name := range native {
			more := replay[name] - native[name]
			extra[name] = append(extra[name], time.Duration(1000*more))
			total += counts[name] * more
			dearest = max(dearest, more)
		}
		mean = append(mean, time.Duration(1000*(total+counts[""]*dearest)/calls))
	}
	for b.Loop() {
	}
	worst := time.Duration(0)
	for name, times := range extra {
		b.ReportMetric(float64(times.Median())/1000, "ns/"+strings.ReplaceAll(name, "+", "-"))
		worst = max(worst, times.Median())
	}
	b.ReportMetric(float64(worst)/1000, "worst-ns/call")
	b.ReportMetric(float64(mean.Median())/1000, "mean-ns/call")
	b.ReportMetric(100*mean.Spread(), "mean-spread-%")
	b.ReportMetric(calls, "calls/start")
	b.ReportMetric(float64(mean.Median())*calls/1e6, "us/start")
}
