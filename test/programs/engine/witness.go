package main

import (
	"encoding/binary"
	"errors"

	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
)

// witness is a graph that adds a named input to a named output. Programs have no named memory, since they compare all that
// they leave themselves. A device on which no graph's results depend on inputs would be refused by verification.
type witness struct {
	in, out cuda.DevicePtr
	axpy    cuda.Function
	exec    cuda.GraphExec
}

const (
	witnessWords = 64
	witnessBatch = 1 << 20 // tells it from the programs' graphs
)

// prefix is the part of a start that a restored process makes as well.
func (w *witness) prefix(e *engine) (err error) {
	if w.in, err = cuda.MemAlloc(4 * witnessWords); err != nil {
		return err
	}
	if w.out, err = cuda.MemAlloc(4 * witnessWords); err != nil {
		return err
	}
	text, err := e.room.bytes(len(kernels) + 64)
	if err != nil {
		return err
	}
	copy(text, kernels+"\n// witness\n")
	module, err := cuda.ModuleLoadData(text)
	if err != nil {
		return err
	}
	if w.axpy, err = module.Function("axpy"); err != nil {
		return err
	}
	named := marks.Tensor{Name: "witness.in", Addr: w.in, Size: 4 * witnessWords, Role: marks.Input, DType: marks.I32, Shape: []int{witnessWords}, Hi: 1 << 20}
	marks.Named(named)
	named.Name, named.Addr, named.Role = "witness.out", w.out, marks.Output
	marks.Named(named)
	return errors.Join(cuda.MemsetAsync(w.in, 1, 4*witnessWords, e.streams[0]), e.streams[0].Synchronize())
}

func (w *witness) launch(s cuda.Stream) error {
	args := cuda.NewArgs().Struct(uint64(w.in), uint64(w.out), 3|witnessWords<<32)
	return errors.Join(cuda.MemsetAsync(w.out, 0, 4*witnessWords, s), w.axpy.Launch(cuda.Dim3{1, 1, 1}, cuda.Dim3{witnessWords, 1, 1}, 0, s, args))
}

func (w *witness) capture(e *engine) error {
	marks.Graph("witness", witnessBatch)
	graph, err := enginekit.Record(e.streams[0], cuda.CaptureRelaxed, func() error { return w.launch(e.streams[0]) })
	if err != nil {
		return err
	}
	defer graph.Destroy()
	if w.exec, err = graph.Instantiate(0); err != nil {
		return err
	}
	return w.exec.Upload(e.streams[0])
}

// serve launches the graph and demands three times the input.
func (w *witness) serve(e *engine, restored map[int64]*restore.Graph) error {
	exec, s := w.exec, e.streams[0]
	if restored != nil {
		exec = restored[witnessBatch].Built()
	}
	out, err := e.room.bytes(4 * witnessWords)
	if err != nil {
		return err
	}
	if err := errors.Join(cuda.MemsetAsync(w.in, 2, 4*witnessWords, s), exec.Launch(s), s.Synchronize(), cuda.CopyToHost(out, w.out)); err != nil {
		return err
	}
	for i := range witnessWords {
		if got := binary.LittleEndian.Uint32(out[4*i:]); got != 3*0x02020202 {
			return errors.New("the batch's own graph left another result than three times its input")
		}
	}
	return nil
}
