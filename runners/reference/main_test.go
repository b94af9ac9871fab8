package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"medusa/runners/reference/oracle"
	"medusa/runners/reference/serve"
	"medusa/test/calllog"
	"medusa/test/checkpoints"
	"medusa/test/testenv"
)

// asEngine makes this test binary behave as the command: child processes then have the race detector as well.
const asEngine = "REFERENCE_TEST_AS_ENGINE"

func TestMain(m *testing.M) {
	if os.Getenv(asEngine) != "" {
		runtime.LockOSThread()
		os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// process is a finished engine process.
type process struct {
	code           int
	stdout, stderr string
}

// start runs the engine on the simulated GPU.
func start(t *testing.T, variables []string, args ...string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(testenv.Simulated(t, variables...), asEngine+"=1", "VBLAS_LIB="+testenv.Path(t, "build/lib/libvendorblas.so"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return process{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// result runs the engine, which has to succeed, and decodes its JSON.
func result[T any](t *testing.T, variables []string, args ...string) T {
	t.Helper()
	p := start(t, variables, append(args, "-o", "json")...)
	var v T
	if p.code != 0 {
		t.Fatalf("exit code %d\n%s", p.code, p.stderr)
	}
	if err := json.Unmarshal([]byte(p.stdout), &v); err != nil {
		t.Fatalf("decode result: %v\n%s", err, p.stdout)
	}
	return v
}

// rounded makes the small checkpoint in F16.
func rounded(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "tiny-f16")
	if err := checkpoints.Half("models/tiny", folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

type runResult struct {
	report
	Runs []serve.Result `json:"runs"`
}

// Logits of prefill and of decode through graphs agree with the float64 oracle within the share of the largest one that
// the storage type allows.
func TestLogitsAgreeWithOracle(t *testing.T) {
	for _, row := range []struct {
		model string
		share float64
	}{{"models/tiny", 1e-4}, {rounded(t), 1e-2}} {
		t.Run(row.model, func(t *testing.T) {
			got := result[struct {
				Prompts []scored `json:"prompts"`
			}](t, nil, "logits", "--model", row.model, "--batch-sizes", "1,2,4", "--kv-cache-bytes", "4000000", "--steps", "18",
				"--prompt", "In the beginning God created", "--prompt", "And", "--prompt", "Blessed are the poor in spirit: for theirs")
			model, err := oracle.Load(row.model)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range got.Prompts {
				want, err := model.Logits(append(slices.Clone(p.Input), p.Tokens...))
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Logits) != 19 {
					t.Fatalf("%d rows of logits, want 19", len(p.Logits))
				}
				compareLogits(t, fmt.Sprintf("%q", p.Prompt), p.Logits, want[len(p.Input)-1:], row.share)
			}
		})
	}
}

// Graphs compute the same as single launches, for captured sizes and for batches in between, across page boundaries.
func TestGraphsEqualEager(t *testing.T) {
	args := []string{"run", "--model", "models/tiny", "--batch-sizes", "1,4,8", "--kv-cache-bytes", "8000000", "--page-size", "4",
		"--batches", "1:9,3:5,8:5", "--seed", "5"}
	native := result[runResult](t, nil, args...)
	eager := result[runResult](t, nil, append(args, "--start", "no-graphs")...)
	if native.Graphs != 3 || eager.Graphs != 0 || !strings.Contains(native.Device, "Simulated") {
		t.Fatalf("%d and %d graphs on %s", native.Graphs, eager.Graphs, native.Device)
	}
	for i, r := range native.Runs {
		for slot := range r.Tokens {
			if len(r.Tokens[slot]) != r.Steps+1 {
				t.Errorf("batch %d slot %d has %d tokens, want %d", r.Batch, slot, len(r.Tokens[slot]), r.Steps+1)
			}
			if !slices.Equal(r.Tokens[slot], eager.Runs[i].Tokens[slot]) {
				t.Errorf("batch %d slot %d: %v with graphs, %v without", r.Batch, slot, r.Tokens[slot], eager.Runs[i].Tokens[slot])
			}
		}
	}
	// One result for every prompt would hide an input that is not read.
	first := native.Runs[2].Tokens
	if slices.Equal(first[0], first[1]) && slices.Equal(first[1], first[2]) {
		t.Errorf("distinct prompts gave the same tokens %v", first[0])
	}
}

// The call log shows the calls of a native start and of its decode steps.
func TestCallLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	got := result[runResult](t, []string{"SIMGPU_CALL_LOG=" + path, "SIMGPU_MEMORY=64M"}, "run", "--model", "models/tiny",
		"--batch-sizes", "1,2", "--max-model-len", "64", "--batches", "2:3")
	log, err := calllog.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := calllog.Count(log.Between("profile-forward", "ready"), "cuStreamBeginCapture"); n != 2 {
		t.Errorf("%d captures behind the profile forward, want 2", n)
	}
	decode := log.Between("decode-step begin batch=2", "decode-step end")
	if launches, replays := calllog.Launches(decode), calllog.Count(decode, "cuGraphLaunch"); launches != 0 || replays != 1 {
		t.Errorf("a decode step launched %d kernels and %d graphs, want 0 and 1", launches, replays)
	}
	if n := calllog.Count(log.Between("ready", ""), "cuGraphLaunch"); n != 3 {
		t.Errorf("%d graph launches after ready, want 3", n)
	}
	var names []string
	for _, s := range got.Stages {
		names = append(names, s.Name)
	}
	if want := []string{"runtime", "structure", "weights", "tokenizer", "kv_cache", "capture"}; !slices.Equal(names, want) {
		t.Errorf("stages %v, want %v", names, want)
	}
}

// More prompts than the batch and the KV cache (four blocks for sequences, one each) hold at a time are answered one after
// the other, in the blocks of those that ended.
func TestGenerate(t *testing.T) {
	args := []string{"generate", "--model", "models/tiny", "--batch-sizes", "1,2,4", "--max-model-len", "32", "--kv-cache-bytes", "61440",
		"--max-tokens", "5"}
	prompts := []string{"And the", "In", "Of", "The king", "Then said", "Blessed", "He", "Behold", "I"}
	for _, p := range prompts {
		args = append(args, "--prompt", p)
	}
	got := result[struct {
		Answers []answer `json:"answers"`
	}](t, nil, args...)
	if len(got.Answers) != len(prompts) {
		t.Fatalf("%d answers to %d prompts", len(got.Answers), len(prompts))
	}
	for i, a := range got.Answers {
		if a.Prompt != prompts[i] || len(a.Tokens) == 0 || len(a.Tokens) > 5 || a.Text == "" {
			t.Errorf("%q is answered with %d tokens: %q", a.Prompt, len(a.Tokens), a.Text)
		}
	}
	long := start(t, nil, append(args, "--max-tokens", "100", "--prompt", strings.Repeat("x ", 40))...)
	if long.code != 1 || !strings.Contains(long.stderr, "--max-model-len") {
		t.Errorf("an overlong prompt ends with exit code %d: %s", long.code, long.stderr)
	}
}

// damaged copies the small checkpoint with one file changed.
func damaged(t *testing.T, name string, change func([]byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"config.json", "model.safetensors", "tokenizer.json"} {
		data, err := os.ReadFile(filepath.Join("models/tiny", file))
		if err != nil {
			t.Fatal(err)
		}
		if file == name {
			data = change(data)
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Bad input ends the process with exit code 1 and one line that names the mistake.
func TestBadInput(t *testing.T) {
	replace := func(from, to string) func([]byte) []byte {
		return func(data []byte) []byte { return bytes.Replace(data, []byte(from), []byte(to), 1) }
	}
	for _, row := range []struct {
		name, model string
		args        []string
		want        string
	}{
		{"missing tensor", damaged(t, "model.safetensors", replace("model.layers.1.mlp.down_proj", "model.layers.1.mlp.DOWN_proj")), nil,
			`"model.layers.1.mlp.down_proj.weight"`},
		{"misshapen", damaged(t, "config.json", replace(`"intermediate_size": 176`, `"intermediate_size": 192`)), nil, "mlp.gate_proj.weight"},
		{"truncated", damaged(t, "model.safetensors", func(d []byte) []byte { return d[:len(d)-1] }), nil, "model.safetensors: tensor"},
		{"no tokenizer we know", damaged(t, "tokenizer.json", replace(`"ByteLevel"`, `"Whitespace"`)), nil, "tokenizer.json"},
		{"no such model", "models/none", nil, "models/none/config.json"},
		{"no memory", "models/tiny", []string{"--kv-cache-bytes", "1000"}, "--gpu-memory-utilization"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := start(t, nil, append([]string{"generate", "--model", row.model, "--batch-sizes", "1", "--prompt", "x"}, row.args...)...)
			if p.code != 1 || p.stdout != "" || !strings.Contains(p.stderr, row.want) || strings.Contains(p.stderr, "panic") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 1, nothing and %q", p.code, p.stdout, p.stderr, row.want)
			}
		})
	}
	if p := start(t, nil, "run", "--model", "models/tiny"); p.code != 2 {
		t.Errorf("a usage error ends with exit code %d, want 2", p.code)
	}
	if p := start(t, []string{"LD_LIBRARY_PATH="}, "generate", "--model", "models/tiny", "--prompt", "x"); p.code != 1 || !strings.Contains(p.stderr, "libcuda.so.1") {
		t.Logf("this machine has a driver of its own: exit code %d, %s", p.code, p.stderr)
	}
}

// The 7B-class preset makes graphs of the size that the paper's Table 1 gives for Llama2 7B: 12518 nodes in 35 graphs.
func TestPresetNodes(t *testing.T) {
	got := result[runResult](t, []string{"SIMGPU_COMPUTE=off", "SIMGPU_MEMORY=80G"}, "run", "--preset", "llama2-7b", "--batches", "1:1",
		"--max-model-len", "256")
	if got.Graphs != 35 || math.Abs(float64(got.Nodes)/12518-1) > 0.1 {
		t.Errorf("%d nodes in %d graphs, want 12518 within 10%% in 35", got.Nodes, got.Graphs)
	}
}
