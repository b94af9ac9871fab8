// Package engine is a Llama-architecture inference engine over the CUDA driver API: paged KV cache, eager prefill, and
// greedy decode through one captured CUDA graph per batch size. With Medusa in the process (package restore) its start is
// recorded, or its graphs are restored instead of captured.
//
// In: Options and a Session. Out: an Engine that prefills and decodes Sequences. Fails: if a checkpoint is not whole or
// not supported (typed errors before any allocation), if memory is short, if the driver fails. A restore that cannot go on
// is no error: the engine then captures its graphs itself.
//
// An Engine belongs to one OS thread (runtime.LockOSThread): the one that called New.
package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/config"
	"medusa/runners/reference/kernels"
	"medusa/runners/reference/safetensors"
	"medusa/runners/reference/tokenizer"
)

// launcher is an executable graph, captured here or restored.
type launcher interface {
	Launch(cuda.Stream) error
}

// Engine is a started engine.
type Engine struct {
	options      Options
	config       *config.Config
	tokenizer    tokenizer.Tokenizer
	storage      kernels.Storage
	otherWeights bool // the start loads other values than the checkpoint's
	session      *restore.Session

	checkpoint *safetensors.Checkpoint // nil for a preset, and once the weights are loaded
	device     *device
	freeBefore uint64 // bytes of device memory, before anything was allocated
	blas       *blas
	program    *program
	weights    *weights
	ropeTable  cuda.DevicePtr
	staging    *staging
	buffers    *buffers
	kv         *kvCache
	arena      arena
	memory     *memory // of the weights and the KV cache

	kvRoom uint64   // bytes that an elastic KV cache may map in this start
	asleep int      // level
	kept   [][]byte // the weights, asleep at level 1

	graphs   map[int]launcher
	captured []cuda.GraphExec
	nodes    int // of the captured graphs
	restored bool
	stages   []Stage
	notices  []string

	// WantLogits makes Prefill and Decode bring the logits to the host as well.
	WantLogits bool
}

// Stage is one part of the start and its time.
type Stage struct {
	Name string
	Took time.Duration
}

// New starts an engine. If the process is to end (*restore.Exit), New frees no resources; on any other error it frees all but the device's primary context.
func New(o Options, session *restore.Session) (*Engine, error) {
	e := &Engine{session: session, kv: &kvCache{}, graphs: map[int]launcher{}}
	if err := e.start(o); err != nil {
		if session.Exit() != nil {
			return nil, err
		}
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close frees all resources. No step may be running.
func (e *Engine) Close() error {
	var err error
	if e.checkpoint != nil {
		err = e.checkpoint.Close()
		e.checkpoint = nil
	}
	if e.device == nil {
		return err
	}
	err = errors.Join(err, e.device.compute.Synchronize())
	for _, g := range e.captured {
		err = errors.Join(err, g.Destroy())
	}
	err = errors.Join(err, e.session.Close(), e.arena.free(), e.kv.release(e.memory, e.asleep != 0))
	if e.buffers != nil {
		err = errors.Join(err, e.buffers.release())
	}
	if e.weights != nil {
		err = errors.Join(err, e.weights.free(e.memory, e.asleep != 0))
	}
	if e.ropeTable != 0 {
		err = errors.Join(err, e.ropeTable.Free())
	}
	if e.staging != nil {
		err = errors.Join(err, e.staging.host.Free())
	}
	if e.blas != nil {
		err = errors.Join(err, e.blas.close())
	}
	if e.program != nil {
		err = errors.Join(err, e.program.unload())
	}
	err = errors.Join(err, e.device.close())
	e.device = nil
	if err != nil {
		return fmt.Errorf("close engine: %w", err)
	}
	return nil
}

// elementSize is the size of a weight, activation, logit or KV-cache element in bytes.
func (e *Engine) elementSize() uint64 { return elements[e.storage].size }

// Tokenizer is the model's.
func (e *Engine) Tokenizer() tokenizer.Tokenizer { return e.tokenizer }

// Config is the model's.
func (e *Engine) Config() *config.Config { return e.config }

// MaxBatch is the largest number of sequences that a step decodes.
func (e *Engine) MaxBatch() int { return e.options.maxBatch() }

// MaxModelLen is the largest number of tokens of a sequence.
func (e *Engine) MaxModelLen() int { return e.options.MaxModelLen }

// Report describes the start for the user.
type Report struct {
	Device   string   // the device's name; "Simulated GPU" for the simulator
	Start    string   // native, kv-only, no-graphs or restored
	Graphs   int      // executable graphs
	Nodes    int      // of all captured graphs; 0 if they were restored
	KVBlocks int      // blocks of the KV cache, the null block included
	Stages   []Stage  // in the order in which they ran
	Notices  []string // remarks on the model for the user
}

// Report returns the account of the start.
func (e *Engine) Report() Report {
	how := string(e.options.Start)
	if e.restored {
		how = "restored"
	}
	return Report{Device: e.device.name, Start: how, Graphs: len(e.graphs), Nodes: e.nodes, KVBlocks: e.kv.blocks, Stages: slices.Clone(e.stages), Notices: slices.Clone(e.notices)}
}
