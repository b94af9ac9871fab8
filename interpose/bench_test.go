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
	"slices"
	"strings"
	"testing"
	"time"

	"medusa/internal/measure"
	"medusa/restore/status"
	"medusa/test/bench"
	"medusa/test/testenv"
)

// unmeasured are hooked functions that no row of the program of calls has, with the reason.
var unmeasured = map[string]string{
	"cuModuleLoad":               "reads its file again and hashes it",
	"cuLibraryLoadFromFile":      "reads its file again and hashes it",
	"cuCtxDestroy":               "once a process",
	"cuCtxDestroy_v2":            "once a process",
	"cuDevicePrimaryCtxReset":    "once a process",
	"cuDevicePrimaryCtxReset_v2": "once a process",
	"cuMulticastCreate":          "a few objects a process",
	"cuMulticastAddDevice":       "a few objects a process",
	"cuMulticastBindMem":         "a few objects a process",
	"cuMulticastBindAddr":        "a few objects a process",
}

// loads is the row whose time belongs to the images: each is looked for among the libraries of the process, or hashed.
const loads = "modules"

// rowsOf returns the row of the program of calls that measures each hooked function.
func rowsOf(b testing.TB) map[string]string {
	b.Helper()
	out, err := stubCommand(b, nil, "list").Output()
	if err != nil {
		b.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for _, function := range words[1:] {
			rows[function] = words[0]
		}
	}
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
		if s.Section != elf.SHN_UNDEF && strings.HasPrefix(s.Name, "cu") && rows[s.Name] == "" && unmeasured[s.Name] == "" {
			b.Errorf("%s is hooked and has no row in test/bench/stub/calls.c", s.Name)
		}
	}
	return rows
}

func TestEveryHookIsMeasured(t *testing.T) {
	testenv.Build(t, "build/lib/libmedusa_interpose.so", "build/stub/calls")
	rowsOf(t)
}

// startCalls counts the hooked calls of a native start of a model of 7B class with 35 batch sizes, by the row that measures them. A
// restored start makes fewer.
func startCalls(b *testing.B, rows map[string]string) map[string]float64 {
	b.Helper()
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
			if row, measured := rows[fields[3]]; measured && row != loads {
				counts[row]++
			}
		}
	}
	return counts
}

// stubCommand is the program of calls with the stub as its driver.
func stubCommand(b testing.TB, variables []string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(testenv.Path(b, "build", "stub", "calls"), arguments...)
	cmd.Env = append(testenv.Simulated(b, variables...), "LD_LIBRARY_PATH="+testenv.Path(b, "build", "stub"))
	return cmd
}

// callCosts runs the program of calls, and returns the processor time of each row per call.
func callCosts(b *testing.B, cmd *exec.Cmd) map[string]float64 {
	b.Helper()
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

// replaying are the variables of a process whose addresses are relocated, and of one that has them exact, as medusa restore starts it
// unless it is told otherwise.
func replaying(b *testing.B) (relocated, exact []string) {
	relocated = []string{"MEDUSA_MODE=replay", "LD_PRELOAD=" + testenv.Path(b, "build", "lib", "libmedusa_interpose.so")}
	return relocated, append(slices.Clip(relocated), "MEDUSA_EXACT=0x120060000000:0x40000000000")
}

// BenchmarkReplayCall measures the extra cost of a driver call under the interposer in replay mode, with relocated and with
// exact addresses: the worst row of the program of calls, and the calls of a start together.
func BenchmarkReplayCall(b *testing.B) {
	testenv.Build(b, "lib", "bin", "build/stub/calls")
	rows := rowsOf(b)
	counts, calls := startCalls(b, rows), 0.0
	for _, count := range counts {
		calls += count
	}
	relocated, exact := replaying(b)
	for _, mode := range []struct {
		name      string
		variables []string
	}{{"relocated", relocated}, {"exact", exact}} {
		b.Run(mode.name, func(b *testing.B) {
			// In thousandths of a nanosecond.
			extra, mean := map[string]measure.Times{}, measure.Times{}
			for range 9 {
				native := callCosts(b, stubCommand(b, nil))
				replay := callCosts(b, stubCommand(b, mode.variables))
				total := 0.0
				for name := range native {
					more := replay[name] - native[name]
					extra[name] = append(extra[name], time.Duration(1000*more))
					total += counts[name] * more
				}
				mean = append(mean, time.Duration(1000*total/calls))
			}
			for b.Loop() {
			}
			worst := time.Duration(0)
			for name, times := range extra {
				b.ReportMetric(float64(times.Median())/1000, "ns/"+strings.ReplaceAll(name, "+", "-"))
				if name != loads {
					worst = max(worst, times.Median())
				}
			}
			b.ReportMetric(float64(worst)/1000, "worst-ns/call")
			b.ReportMetric(float64(mean.Median())/1000, "mean-ns/call")
			b.ReportMetric(100*mean.Spread(), "mean-spread-%")
			b.ReportMetric(calls, "calls/start")
			b.ReportMetric(float64(mean.Median())*calls/1e6, "us/start")
		})
	}
}

// BenchmarkLargeMemory measures an allocation of 64 MiB and its free with exact addresses on the simulated GPU, where the interposer
// makes such memory of the driver's physical memory and mappings: against the same calls without the interposer, and against a
// program that calls for memory at an address of its own choice by itself. No mechanism can take less than that program.
func BenchmarkLargeMemory(b *testing.B) {
	testenv.Build(b, "lib", "build/stub/calls")
	_, exact := replaying(b)
	cost := func(row string, variables ...string) time.Duration {
		cmd := exec.Command(testenv.Path(b, "build", "stub", "calls"), row)
		cmd.Env = testenv.Simulated(b, append(variables, "SIMGPU_COMPUTE=off", "SIMGPU_MEMORY=40G")...)
		return time.Duration(callCosts(b, cmd)[row])
	}
	var exactly, native, mapped measure.Times
	for range 9 {
		exactly = append(exactly, cost("large-memory", exact...))
		native, mapped = append(native, cost("large-memory")), append(mapped, cost("mapped-memory"))
	}
	for b.Loop() {
	}
	bench.Report(b, "exact", exactly)
	bench.Report(b, "native", native)
	bench.Report(b, "mapped", mapped)
	bench.ReportRatio(b, "over-native", exactly, native)
	bench.ReportRatio(b, "mapped-over-native", mapped, native)
	bench.ReportRatio(b, "over-mapped", exactly, mapped)
}
