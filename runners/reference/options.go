package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"medusa/restore"
	"medusa/runners/reference/engine"
	"medusa/runners/reference/serve"
)

// options are the flags that every command shares.
type options struct {
	engine     engine.Options
	start      string
	batchSizes string
	output     string
}

func (o *options) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.engine.Model, "model", "", "checkpoint `directory` (config.json, safetensors, tokenizer.json)")
	f.StringVar(&o.engine.Preset, "preset", "", "a model `shape` with dummy weights instead of a checkpoint: llama2-7b")
	f.IntVar(&o.engine.Device, "device", 0, "device `ordinal`")
	f.StringVar(&o.batchSizes, "batch-sizes", "", "`sizes` to capture graphs for, such as 1,2,4 (default vLLM's 35 from 1 to 256)")
	f.IntVar(&o.engine.MaxModelLen, "max-model-len", 0, "`tokens` of the longest sequence (default the model's, at most 2048)")
	f.IntVar(&o.engine.MaxBatchedTokens, "max-batched-tokens", 0, "`tokens` of the largest prefill (default the longest sequence or the largest batch)")
	f.IntVar(&o.engine.PageSize, "page-size", 16, "`tokens` of a KV-cache block")
	f.Float64Var(&o.engine.Utilization, "gpu-memory-utilization", 0.9, "`share` of the device's memory to use")
	f.Uint64Var(&o.engine.KVCacheBytes, "kv-cache-bytes", 0, "`bytes` of the KV cache (default decided by a profile forward)")
	f.StringVar((*string)(&o.engine.KV), "kv", string(engine.KVFixed), "`layout` of the KV cache: fixed, or elastic, which can change its memory")
	f.Uint64Var(&o.engine.KVMappedBytes, "kv-mapped-bytes", 0, "`bytes` of memory of an elastic KV cache (default as much as there is, up to its size)")
	f.BoolVar(&o.engine.SleepMode, "enable-sleep-mode", false, "allocate weights and KV cache so that serve can give their memory back")
	f.StringVar(&o.start, "start", string(engine.StartNative), "`how` to start: native, kv-only or no-graphs")
	f.StringVarP(&o.output, "output", "o", "text", "`format` of the result: text or json")
}

// open starts an engine, prints its stage times to standard error, runs serve and closes it.
func (o *options) open(cmd *cobra.Command, run func(*engine.Engine) error) (err error) {
	if (o.engine.Model == "") == (o.engine.Preset == "") {
		return usageError{errors.New("one of --model and --preset is needed")}
	}
	if o.output != "text" && o.output != "json" {
		return usageError{fmt.Errorf("output format %q is neither text nor json", o.output)}
	}
	if o.engine.BatchSizes, err = parseSizes(o.batchSizes); err != nil {
		return usageError{err}
	}
	o.engine.Start = engine.Start(o.start)
	session, err := restore.FromEnv(restore.Hooks{Warn: cmd.ErrOrStderr(), End: os.Exit})
	if err != nil {
		return err
	}
	e, err := engine.New(o.engine, session)
	if err != nil {
		return err
	}
	defer func() {
		if session.Exit() == nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if err := e.Ready(func() ([]byte, error) { return serve.SelfTest(e) }); err != nil {
		return err
	}
	printReport(cmd.ErrOrStderr(), e.Report())
	return run(e)
}

func parseSizes(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var sizes []int
	for _, item := range strings.Split(text, ",") {
		n, err := strconv.Atoi(item)
		if err != nil {
			return nil, fmt.Errorf("batch size %q is not a number", item)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}
