package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"medusa/test/calllog"
	"medusa/test/testenv"
)

// underMedusa runs the medusa command, and under it this test binary as the engine.
func underMedusa(t *testing.T, variables []string, command []string, engine ...string) process {
	t.Helper()
	testenv.Build(t)
	cmd := exec.Command(testenv.Path(t, "build/medusa"), append(append(command, "--", os.Args[0]), engine...)...)
	cmd.Env = append(testenv.Simulated(t, variables...), asEngine+"=1", "VBLAS_LIB="+testenv.Path(t, "build/lib/libvendorblas.so"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code says it
	return process{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// A restored engine decodes as a native one does, on prompts that verification has not seen, and the call log proves
// that it neither profiled nor captured. With an artifact for other options it starts natively and decodes the same.
func TestRestored(t *testing.T) {
	odd := t.TempDir()
	c := shapes[0].checkpoint()
	c.write(t, odd)
	for name, model := range map[string]string{"tiny": "models/tiny", "tiny-f16": rounded(t), shapes[0].String(): odd} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			artifact, calls := filepath.Join(dir, "a.medusa"), filepath.Join(dir, "calls")
			memory := []string{"SIMGPU_MEMORY=512M"}
			// A small KV cache: verification hashes it many times over.
			shape := []string{"--model", model, "--batch-sizes", "1,2,8,72", "--max-model-len", "48", "--gpu-memory-utilization", "0.06"}
			run := append([]string{"run", "--batches", "1:33,2:3,5:3,8:3,72:2", "--seed", "11", "-o", "json"}, shape...)
			if p := underMedusa(t, memory, []string{"materialize", "-o", artifact}, run...); p.code != 0 {
				t.Fatalf("materialize ends with exit code %d\n%s", p.code, p.stderr)
			}
			native := result[runResult](t, memory, run...)
			// The proxy that counts on real GPUs stands between the interposer and the driver.
			counted := filepath.Join(dir, "counted")
			proxy := []string{"SIMGPU_CALL_LOG=" + calls, "CALLLOG=" + counted, "CALLLOG_DRIVER=" + testenv.Path(t, "build/simulated/libcuda.so.1"),
				"LD_PRELOAD=" + testenv.Path(t, "build/lib/calllog/libcuda.so.1")}
			p := underMedusa(t, append(memory, proxy...), []string{"restore", artifact}, run...)
			restored := decodeRun(t, p)
			// Fewer blocks than natively: the second copy of library workspaces comes out of the KV cache.
			if restored.Start != "restored" || restored.Graphs != native.Graphs || restored.KVBlocks >= native.KVBlocks || restored.KVBlocks == 0 {
				t.Errorf("start %q, %d graphs, %d blocks; native has %d and more than %d\n%s",
					restored.Start, restored.Graphs, restored.KVBlocks, native.Graphs, native.KVBlocks, p.stderr)
			}
			if !reflect.DeepEqual(restored.Runs, native.Runs) {
				t.Errorf("tokens differ:\nnative   %v\nrestored %v", native.Runs, restored.Runs)
			}
			log, err := calllog.Read(calls)
			if err != nil {
				t.Fatal(err)
			}
			if n := calllog.Count(log.Entries, "cuStreamBeginCapture"); n != 0 {
				t.Errorf("%d captures in a restored start", n)
			}
			count, err := calllog.Read(counted)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := calllog.Launches(count.Entries), calllog.Launches(log.Entries); got != want || want == 0 {
				t.Errorf("the counting proxy saw %d launches, the device %d", got, want)
			}
			for _, e := range log.Entries {
				if e.Mark == "profile-forward" {
					t.Error("a profile forward in a restored start")
				}
			}
			if n := calllog.Count(log.Between("ready", ""), "cuGraphLaunch"); n != 33+3+3+3+2 {
				t.Errorf("%d graph launches after ready, want one a decode step", n)
			}
			other := append(run, "--page-size", "8")
			foreign := underMedusa(t, memory, []string{"restore", artifact}, other...)
			if got := decodeRun(t, foreign); got.Start != "native" || !strings.Contains(foreign.stderr, "engine.args") ||
				!reflect.DeepEqual(got.Runs, result[runResult](t, memory, other...).Runs) {
				t.Errorf("with a foreign artifact: start %q\n%s", got.Start, foreign.stderr)
			}
		})
	}
}

func decodeRun(t *testing.T, p process) runResult {
	t.Helper()
	var r runResult
	if err := json.Unmarshal([]byte(p.stdout), &r); err != nil || p.code != 0 {
		t.Fatalf("exit code %d, %v\n%s", p.code, err, p.stderr)
	}
	return r
}
