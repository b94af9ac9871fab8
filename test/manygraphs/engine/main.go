// Command manygraphs-engine captures as many graphs as vLLM does for a model of 28 layers: 29 pieces at each of 51 sizes, and 35
// whole graphs. A piece is a few small kernels over its layer's weights and KV cache; a whole graph is such kernels of all layers.
//
// In: the environment that `medusa` sets. Out: one line, "restored=BOOL graphs=N". Fails: with the driver's error.
package main

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"

	"medusa/artifacts"
	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
	"medusa/test/enginekit/start"
)

//go:embed step.ptx
var image []byte

const (
	layers      = 28
	pieceSizes  = 51
	wholeSizes  = 35
	rows        = 64 // at most, of an input and of an output
	weightBytes = 1 << 20
	poolBytes   = 1 << 20 // a hidden state of 64 rows and 4,096 floats
	cacheBytes  = 256 << 20
)

type engine struct {
	session       *restore.Session
	stream        cuda.Stream
	module        cuda.Module
	step          cuda.Function
	args          *cuda.Args
	input, output cuda.DevicePtr
	weights, kv   [layers]cuda.DevicePtr
	pool          [layers + 1]cuda.DevicePtr // of the graphs' own
	layerBytes    uint64                     // of the KV cache
	native        []cuda.GraphExec
}

func main() {
	runtime.LockOSThread()
	if err := (&engine{}).run(); err != nil {
		start.End("manygraphs-engine", err)
	}
}

func (e *engine) run() (err error) {
	if e.session, err = restore.FromEnv(restore.Hooks{End: os.Exit}); err != nil {
		return err
	}
	defer e.session.Close()
	if err := e.load(); err != nil {
		return err
	}
	marks.Begin(marks.WarmUp)
	restored, err := start.Graphs(e.session.Graphs, e.captureAll)
	if err != nil {
		return err
	}
	marks.Begin(marks.Ready)
	if err := e.session.Ready(nil); err != nil {
		return err
	}
	fmt.Printf("restored=%v graphs=%d\n", restored != nil, max(len(restored), len(e.native)))
	return nil
}

func (e *engine) load() error {
	if _, _, err := enginekit.Open(); err != nil {
		return err
	}
	marks.Begin(marks.Structure)
	identified := e.session.Identify(artifacts.Identity{{Key: "engine.name", Value: "manygraphs"}})
	if identified != nil && !errors.As(identified, new(*restore.Fallback)) {
		return identified
	}
	e.args = cuda.NewArgs()
	var err error
	if e.module, err = cuda.ModuleLoadData(append(image, 0)); err != nil {
		return err
	}
	if err := errors.Join(enginekit.Streams(&e.stream), enginekit.Functions(e.module, map[string]*cuda.Function{"step": &e.step})); err != nil {
		return err
	}
	marks.Begin(marks.KVCache)
	bytes, given := e.session.KVBytes()
	if !given {
		free, total, err := cuda.MemInfo()
		if err != nil {
			return err
		}
		bytes = cacheBytes
		marks.Profiled(marks.KVProfile{KVBytes: bytes, Total: total, FreeBefore: free, FreeAfter: free, Utilization: 0.9, ProfileTokens: 1})
	}
	e.layerBytes = bytes / layers &^ 511
	for i := range layers {
		if err := e.named(&e.kv[i], marks.Tensor{Name: fmt.Sprintf("kv.%d", i), Size: e.layerBytes, Role: marks.KV, DType: marks.F32}); err != nil {
			return err
		}
	}
	marks.Begin(marks.Weights)
	return e.allocate()
}

func (e *engine) named(at *cuda.DevicePtr, t marks.Tensor) (err error) {
	*at, err = cuda.MemAlloc(t.Size)
	t.Addr = *at
	marks.Named(t)
	return err
}

func (e *engine) allocate() error {
	for i := range layers {
		if err := e.named(&e.weights[i], marks.Tensor{Name: fmt.Sprintf("weight.%d", i), Size: weightBytes, Role: marks.Weight, DType: marks.F32}); err != nil {
			return err
		}
		var data []byte
		for k := range weightBytes / 4 {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32((k*7+i)%97)/97))
		}
		if err := cuda.CopyToDevice(e.weights[i], data); err != nil {
			return err
		}
	}
	shape := []int{rows}
	return errors.Join(
		e.named(&e.input, marks.Tensor{Name: "input", Size: 4 * rows, Role: marks.Input, DType: marks.F32, Shape: shape}),
		e.named(&e.output, marks.Tensor{Name: "output", Size: 4 * rows, Role: marks.Output, DType: marks.F32, Shape: shape}))
}

func (e *engine) captureAll() (err error) {
	for i := range e.pool {
		if e.pool[i], err = cuda.MemAlloc(poolBytes); err != nil {
			return err
		}
	}
	marks.Begin(marks.Capture)
	for size := range pieceSizes {
		for piece := range layers + 1 {
			if err := e.capture(fmt.Sprintf("piece %d at %d", piece, size+1), size+1, piece, piece+1); err != nil {
				return err
			}
		}
	}
	for size := range wholeSizes {
		if err := e.capture(fmt.Sprintf("whole at %d", size+1), size+1, 0, layers); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) capture(label string, batch, from, to int) error {
	marks.Graph(label, batch)
	exec, err := enginekit.Capture(e.stream, cuda.CaptureGlobal, func() error { return e.issue(batch, from, to) })
	if err != nil {
		return fmt.Errorf("capture %s: %w", label, err)
	}
	e.native = append(e.native, exec)
	return nil
}

// issue launches the kernels of some layers. The piece behind the last layer has the first one's cache and weights.
func (e *engine) issue(batch, from, to int) error {
	hidden := e.input
	for piece := from; piece < to; piece++ {
		layer := piece % layers
		a, b := e.pool[piece], e.pool[piece]+poolBytes/2
		slot := e.kv[layer] + cuda.DevicePtr(4*rows*(piece+1))
		for _, s := range [][3]cuda.DevicePtr{
			{a, hidden, e.weights[layer]},
			{b, a, e.kv[layer]},
			{slot, a, b},
			{a, b, e.weights[layer] + 512},
			{b, a, slot},
		} {
			if err := e.launch(batch, s); err != nil {
				return err
			}
		}
		hidden = b
	}
	return e.launch(batch, [3]cuda.DevicePtr{e.output, hidden, e.input})
}

func (e *engine) launch(batch int, s [3]cuda.DevicePtr) error {
	return e.step.Launch(cuda.Dim3{1, 1, 1}, cuda.Dim3{uint32(batch), 1, 1}, 0, e.stream, e.args.Reset().Ptr(s[0]).Ptr(s[1]).Ptr(s[2]))
}
