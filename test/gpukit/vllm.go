package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"medusa/interpose"
	"medusa/restore/status"
)

// vllmArguments are of vLLM's LLM. Its attention is Triton's: other kernels of attention did not come along.
func (k *Kit) vllmArguments() string {
	return fmt.Sprintf(`{"max_model_len":1024,"max_num_seqs":32,"gpu_memory_utilization":%s,"attention_config":{"backend":"TRITON_ATTN"},`+
		`"compilation_config":{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY","cudagraph_capture_sizes":[1,2,4,8,16,32]}}`, sized(k, "0.6", "0.3"))
}

// vllm is the engine's command. It decodes greedily; on the simulated GPU, where these kernels are no-ops, it only starts.
func (k *Kit) vllm(model string) []string {
	return []string{k.Python, k.path("engine", "vllm", "measure.py"), model, "--arguments", k.vllmArguments(), "--batches", sized(k, "1:64,8:32,32:32", "")}
}

// vllmEnv lays vLLM out, unless an earlier call has, and returns the environment that finds it and the plug-in.
func (a *Attempt) vllmEnv() ([]string, error) {
	site := filepath.Join(a.Work, "vllm")
	if _, err := os.Stat(site); err != nil {
		if _, err := a.run(nil, a.Python, a.path("engine", "vllm", "pack.py"), "unpack", a.Parts, site); err != nil {
			return nil, err
		}
	}
	env := []string{"PYTHONPATH=" + a.path("lib", "python") + ":" + site, "VLLM_ENABLE_V1_MULTIPROCESSING=0", "VLLM_USE_FLASHINFER_SAMPLER=0", "VLLM_NO_USAGE_STATS=1",
		"VLLM_CACHE_ROOT=" + filepath.Join(a.Work, "vllm-cache"), "TRITON_CACHE_DIR=" + filepath.Join(a.Work, "triton")}
	if a.simulated() {
		env = append(env, "TRITON_LIBCUDA_PATH="+a.path("simulated"))
	}
	return env, nil
}

// regions tells which import keeps the driver from the region's base.
func (a *Attempt) regions(env []string) error {
	for _, modules := range [][]string{{}, {"vllm"}, {"vllm", "vllm.v1.worker.gpu_worker"}} {
		out, err := a.run(append(a.asked(interpose.DefaultRegion), env...), append([]string{a.Python, a.path("engine", "vllm", "region.py")}, modules...)...)
		if err != nil {
			return err
		}
		got := named(out)
		a.row(fmt.Sprintf("region after %v and torch", modules), "state %s (1: honoured) %s", got["state"], got["reason"])
	}
	return nil
}

// vllmRestored starts vLLM natively, materializes it, and starts it restored at the recorded addresses and at others: its tokens are to stay
// the same.
func vllmRestored(a *Attempt) error {
	env, err := a.vllmEnv()
	if err != nil {
		return err
	}
	model := filepath.Join(a.Work, "vllm-model")
	if _, err := a.run(env, a.Python, a.path("engine", "vllm", "shape.py"), sized(a.Kit, "0.6b", "tiny"), model); err != nil {
		return err
	}
	if err := a.regions(env); err != nil {
		return err
	}
	native, err := a.vllmStart(env, "native", a.vllm(model)...)
	if err != nil {
		return err
	}
	if err := a.materialize(env, "vllm", a.vllm(model)...); err != nil {
		return err
	}
	for _, addresses := range []string{"exact", "relocate"} {
		path := filepath.Join(a.Work, "vllm-status.json")
		os.Remove(path)
		got, err := a.vllmStart(env, addresses, append([]string{a.path("medusa"), "restore", "--strict", "--addresses=" + addresses, "--status", path,
			a.artifact("vllm"), "--"}, a.vllm(model)...)...)
		if err != nil {
			return err
		}
		said, err := status.Read(path)
		if err != nil {
			return err
		}
		a.row("", "%s; %d graphs with %d nodes, addresses %s; %s", said.Status, said.Graphs, said.Nodes, said.Addresses, spans(said))
		switch {
		case said.Status != status.Restored || said.Graphs == 0:
			return fmt.Errorf("addresses %s: started %s with %d graphs: %s", addresses, said.Status, said.Graphs, said.Detail)
		case addresses == "exact" && said.Addresses != status.Exact:
			return fmt.Errorf("addresses are %s: %s", said.Addresses, said.Relocated)
		case !reflect.DeepEqual(got, native):
			return fmt.Errorf("addresses %s: other tokens than natively", addresses)
		}
	}
	return nil
}

// vllmStart returns the tokens by batch size.
func (a *Attempt) vllmStart(env []string, what string, argv ...string) (map[string][][]int, error) {
	began := time.Now()
	out, err := a.run(env, argv...)
	if err != nil {
		return nil, err
	}
	var said map[string]struct{ Tokens [][]int }
	if err := json.Unmarshal([]byte(lastLine(out)), &said); err != nil {
		return nil, fmt.Errorf("read tokens (%s): %w", what, err)
	}
	tokens, count := map[string][][]int{}, 0
	for batch, s := range said {
		tokens[batch] = s.Tokens
		for _, sequence := range s.Tokens {
			count += len(sequence)
		}
	}
	if count == 0 && !a.simulated() {
		return nil, fmt.Errorf("%s: no tokens", what)
	}
	a.row("vllm, "+what, "%.1f s with imports, %d tokens", time.Since(began).Seconds(), count)
	return tokens, nil
}
