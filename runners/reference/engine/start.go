package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"medusa/internal/cuda"
	"medusa/runners/reference/marks"
	"medusa/runners/reference/tokenizer"
)

// Names of the stages: the paper's five, and those before them.
const (
	stageRuntime   = "runtime" // driver, context, model metadata and identity
	stageStructure = "structure"
	stageWeights   = "weights"
	stageTokenizer = "tokenizer"
	stageKVCache   = "kv_cache"
	stageCapture   = "capture"
)

// start runs the stages. If the KV cache's size is known, it comes before the weights, whose copy then has the
// triggering layers beside it (paper §6); otherwise a forward over the loaded weights decides it.
func (e *Engine) start(o Options) error {
	if err := e.stage(stageRuntime, func() error { return e.openModel(o) }); err != nil {
		return err
	}
	e.begin(marks.Structure)
	if err := e.stage(stageStructure, e.structure); err != nil {
		return err
	}
	kvBytes, given := e.session.KVBytes()
	if exit := e.session.Exit(); exit != nil {
		return exit
	}
	if !given && e.options.KVCacheBytes != 0 {
		kvBytes, given = e.options.KVCacheBytes, true
		if err := e.markGiven(kvBytes); err != nil {
			return err
		}
	}
	if !given && e.options.Start == StartKVOnly {
		return fmt.Errorf("start %s: the size of the KV cache is not known (pass --kv-cache-bytes)", StartKVOnly)
	}
	if given {
		e.begin(marks.KVCache)
		if err := e.stage(stageKVCache, func() error { return e.makeKVCache(kvBytes) }); err != nil {
			return err
		}
	}
	e.begin(marks.Weights)
	if err := e.stage(stageWeights, e.loadWeights); err != nil {
		return err
	}
	e.begin(marks.Tokenizer)
	if err := e.stage(stageTokenizer, e.loadTokenizer); err != nil {
		return err
	}
	if !given {
		e.begin(marks.KVCache)
		err := e.stage(stageKVCache, func() error {
			bytes, err := e.profile()
			if err != nil {
				return err
			}
			return e.makeKVCache(bytes)
		})
		if err != nil {
			return err
		}
	}
	e.begin(marks.WarmUp)
	return e.stage(stageCapture, e.makeGraphs)
}

// Ready tells Medusa and the call log that the engine serves from here on. Verification serves selfTest.
// In a verifying run it returns an *restore.Exit.
func (e *Engine) Ready(selfTest func() ([]byte, error)) error {
	if err := e.runTriggers(); err != nil { // in a native start that checks
		return err
	}
	marks.CallLog("ready")
	e.begin(marks.Ready)
	if err := e.session.Ready(selfTest); err != nil {
		return err
	}
	e.stretchKV()
	return nil
}

// begin enters a phase.
func (e *Engine) begin(p marks.Phase) {
	e.session.Phase(string(p))
	marks.Begin(p)
}

// stage runs and times one stage. Enqueued work counts for the stage that enqueued it.
func (e *Engine) stage(name string, run func() error) error {
	began := time.Now()
	err := run()
	if err == nil {
		err = e.device.compute.Synchronize()
	}
	if err != nil {
		return fmt.Errorf("start stage %s: %w", name, err)
	}
	e.stages = append(e.stages, Stage{name, time.Since(began)})
	return nil
}

// openModel opens the device and reads the model's description, without allocating device memory.
func (e *Engine) openModel(o Options) (err error) {
	if err := e.readModel(o); err != nil {
		return err
	}
	e.memory = &memory{elastic: o.SleepMode, device: o.Device}
	if e.device, err = openDevice(o.Device); err != nil {
		return err
	}
	if e.freeBefore, _, err = cuda.MemInfo(); err != nil {
		return err
	}
	return e.identify()
}

// structure makes everything whose size the model and the options decide: kernels, BLAS, weights without contents, rope
// table, static inputs and outputs.
func (e *Engine) structure() (err error) {
	if e.program, err = loadProgram(e.device.compute, e.storage); err != nil {
		return err
	}
	p, c := e.program, e.config
	p.hidden, p.intermediate, p.vocab = c.HiddenSize, c.IntermediateSize, c.VocabSize
	p.qHeads, p.kvHeads, p.headDim, p.eps = c.QHeads, c.KVHeads, c.HeadDim, c.RMSNormEps
	p.pageSize, p.maxBlocks = e.options.PageSize, e.options.maxBlocks()
	if e.blas, err = openBLAS(e.device.compute, e.storage); err != nil {
		return err
	}
	if e.weights, err = allocateWeights(c, e.storage, e.memory); err != nil {
		return err
	}
	host, err := cuda.HostAlloc(stagingSize)
	if err != nil {
		return fmt.Errorf("allocate staging memory: %w", err)
	}
	e.staging = &staging{host: host, stream: e.device.compute}
	if err := e.makeRopeTable(); err != nil {
		return err
	}
	return e.allocateBuffers()
}

// stagingSize is the page-locked memory for small copies; longer ones go in pieces.
const stagingSize = 1 << 20

// makeRopeTable fills [positions][head_dim] with the cosines and then the sines of every position's angles. They are
// computed in float64 and rounded once.
func (e *Engine) makeRopeTable() error {
	frequencies := e.config.Rope.Frequencies(e.config.HeadDim)
	table := make([]byte, 0, 4*e.options.MaxModelLen*e.config.HeadDim)
	for position := range e.options.MaxModelLen {
		for _, angle := range []func(float64) float64{math.Cos, math.Sin} {
			for _, f := range frequencies {
				table = binary.LittleEndian.AppendUint32(table, math.Float32bits(float32(angle(float64(position)*f))))
			}
		}
	}
	var err error
	if e.ropeTable, err = cuda.MemAlloc(uint64(len(table))); err != nil {
		return fmt.Errorf("allocate rope table: %w", err)
	}
	return e.staging.put(e.ropeTable, table)
}

// makeKVCache allocates the cache and names the buffers whose bounds depend on it.
func (e *Engine) makeKVCache(bytes uint64) (err error) {
	cache, err := allocateKV(e.config, e.options, e.storage, bytes, e.memory)
	if err != nil {
		return err
	}
	e.kv, e.kvRoom = cache, bytes
	if room, known := e.session.KVRoom(); known {
		e.kvRoom = room
	}
	e.markBuffers()
	return nil
}

// loadWeights fills the weights, and runs the triggering layers while they are copied. The results of a triggering layer
// are thrown away, since its weights may still be on their way; it is run for the modules that it loads.
func (e *Engine) loadWeights() error {
	if e.checkpoint == nil {
		return e.runTriggers()
	}
	l, err := startLoader(e.device, e.weights, e.checkpoint, e.storage, e.otherWeights)
	if err != nil {
		return err
	}
	triggered := e.runTriggers()
	if err := l.wait(); err != nil {
		return err
	}
	if triggered != nil {
		return triggered
	}
	err = e.checkpoint.Close()
	e.checkpoint = nil
	return err
}

// loadTokenizer reads the tokenizer. A model without one is served in token ids.
func (e *Engine) loadTokenizer() (err error) {
	if e.options.Preset != "" {
		e.tokenizer = tokenizer.IDs(e.config.VocabSize)
		return nil
	}
	e.tokenizer, err = tokenizer.Load(e.options.Model, e.config.VocabSize)
	if errors.Is(err, fs.ErrNotExist) {
		e.tokenizer, err = tokenizer.IDs(e.config.VocabSize), nil
		e.notices = append(e.notices, fmt.Sprintf("%s has no %s: prompts and answers are token ids", e.options.Model, tokenizer.FileName))
	}
	return err
}

// runTriggers runs the first layer eagerly at every batch size that the session asks for. An error that leaves the
// device usable is the session's fallback to a native start, and no error of the engine's.
func (e *Engine) runTriggers() error {
	if e.options.Start != StartNative {
		return nil // no graph will be restored
	}
	for _, batch := range e.session.Triggers() {
		if batch < 1 || batch > int64(e.MaxBatch()) {
			return fmt.Errorf("run triggering layer: batch size %d is not between 1 and %d", batch, e.MaxBatch())
		}
		err := marks.Medusa(func() error {
			return e.session.Trigger(func() error { return e.eagerStep(int(batch), 1) })
		})
		if e.session.Exit() != nil || cuda.Sticky(err) {
			return err
		}
		if err != nil {
			return nil
		}
	}
	return nil
}
