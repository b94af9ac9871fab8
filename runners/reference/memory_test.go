package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"medusa/serving/agent"
)

// A server measures the memory that an engine has of the simulated GPU: its context always, weights and KV cache while it is awake.
func TestMemoryAsMeasured(t *testing.T) {
	folder := t.TempDir()
	tools, err := filepath.Abs("../../simgpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("SIMGPU_PROCESSES", folder)
	t.Setenv("SIMGPU_MEMORY", "4G")
	s := serving(t, []string{"SIMGPU_PROCESSES=" + folder, "SIMGPU_MEMORY=4G", "SIMGPU_OVERHEAD=charged", "CUDA_VISIBLE_DEVICES=1"},
		append(served, "--enable-sleep-mode", "--kv-cache-bytes", "64000000")...)
	share := func(gpu string) float64 {
		t.Helper()
		m, err := agent.NewMeter(gpu)
		if err != nil {
			t.Fatal(err)
		}
		part, err := m.Share(t.Context(), []int{s.process.Pid})
		if (err == nil) != (gpu == "1") {
			t.Errorf("GPU %s: %v", gpu, err)
		}
		return part
	}
	post := func(path string) {
		t.Helper()
		response, err := s.post(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %s", path, response.Status)
		}
	}
	const context, cache = 264. / 4096, 60. / 4096 // of the GPU
	awake := share("1")
	post("/sleep?level=1")
	asleep := share("1")
	post("/wake_up")
	if again := share("1"); asleep < context || asleep > context+0.01 || awake < asleep+cache || again != awake {
		t.Errorf("the engine has %g of the GPU, asleep %g, awake again %g", awake, asleep, again)
	}
	share("0")
	s.stop(t)
	share("0")
	if files, err := os.ReadDir(folder); err != nil || len(files) != 0 {
		t.Errorf("%d processes are listed after their end, %v", len(files), err)
	}
}
