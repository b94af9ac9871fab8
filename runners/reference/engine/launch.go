package engine

import (
	"fmt"
	"math"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/runners/reference/kernels"
)

// program is the engine's own kernels, loaded, and the model's dimensions that every launch needs. Each method enqueues
// one kernel on the compute stream; parameters and layouts are those of kernels/README.md.
type program struct {
	functions [kernels.Attention + 1]cuda.Function
	modules   []cuda.Module
	args      *cuda.Args
	stream    cuda.Stream

	hidden, intermediate, vocab int
	qHeads, kvHeads, headDim    int
	pageSize, maxBlocks         int
	eps                         float32
}

// loadProgram loads every module and looks every kernel up by name.
func loadProgram(stream cuda.Stream, storage kernels.Storage) (*program, error) {
	p := &program{args: cuda.NewArgs(), stream: stream}
	byName := map[string]cuda.Module{}
	for _, m := range kernels.Modules() {
		module, err := cuda.ModuleLoadData(m.PTX)
		if err != nil {
			return nil, fmt.Errorf("load kernels %s: %w", m.Name, err)
		}
		byName[m.Name] = module
		p.modules = append(p.modules, module)
	}
	for k := range p.functions {
		module, name := kernels.Name(kernels.Kernel(k), storage)
		f, err := byName[module].Function(name)
		if err != nil {
			return nil, fmt.Errorf("find kernel %s in %s: %w", name, module, err)
		}
		p.functions[k] = f
	}
	return p, nil
}

func (p *program) unload() error {
	for _, m := range p.modules {
		if err := m.Unload(); err != nil {
			return err
		}
	}
	return nil
}

// launch runs a kernel over rows, with one block a row and slice of y.
func (p *program) launch(k kernels.Kernel, rows, y int, threads uint32) error {
	return p.functions[k].Launch(cuda.Dim3{uint32(rows), uint32(y), 1}, cuda.Dim3{threads, 1, 1}, 0, p.stream, p.args)
}

func (p *program) embed(tokens, table, out cuda.DevicePtr, rows int) error {
	p.args.Reset().Ptr(tokens).Ptr(table).Ptr(out).I32(p.hidden)
	return p.launch(kernels.Embed, rows, 1, kernels.RowThreads(p.hidden))
}

func (p *program) gatherRows(in, which, out cuda.DevicePtr, rows int) error {
	p.args.Reset().Ptr(in).Ptr(which).Ptr(out).I32(p.hidden)
	return p.launch(kernels.GatherRows, rows, 1, kernels.RowThreads(p.hidden))
}

func (p *program) rmsNorm(x, weight, out cuda.DevicePtr, rows int) error {
	p.args.Reset().Ptr(x).Ptr(weight).Ptr(out).I32(p.hidden).F32(p.eps)
	return p.launch(kernels.RMSNorm, rows, 1, kernels.RowThreads(p.hidden))
}

func (p *program) addRMSNorm(residual, x, weight, out cuda.DevicePtr, rows int) error {
	p.args.Reset().Ptr(residual).Ptr(x).Ptr(weight).Ptr(out).I32(p.hidden).F32(p.eps)
	return p.launch(kernels.AddRMSNorm, rows, 1, kernels.RowThreads(p.hidden))
}

func (p *program) rope(qkv, positions, table cuda.DevicePtr, rows int) error {
	p.args.Reset().Ptr(qkv).Ptr(positions).Ptr(table).I32(p.qHeads).I32(p.kvHeads).I32(p.headDim)
	return p.launch(kernels.Rope, rows, 1, kernels.RowThreads(p.qHeads*p.headDim))
}

func (p *program) siluMul(gateUp, out cuda.DevicePtr, rows int) error {
	p.args.Reset().Ptr(gateUp).Ptr(out).I32(p.intermediate)
	return p.launch(kernels.SiLUMul, rows, 1, kernels.RowThreads(p.intermediate))
}

func (p *program) argmax(logits, out cuda.DevicePtr, rows int) error {
	p.args.Reset().Ptr(logits).Ptr(out).I32(p.vocab)
	return p.launch(kernels.Argmax, rows, 1, kernels.ArgmaxThreads)
}

func (p *program) storeKV(qkv, k, v cuda.DevicePtr, in tokenInputs) error {
	p.args.Reset().Ptr(qkv).Ptr(k).Ptr(v).Ptr(in.tables).Ptr(in.sequences).Ptr(in.positions).
		I32(p.qHeads).I32(p.kvHeads).I32(p.headDim).I32(p.pageSize).I32(p.maxBlocks)
	return p.launch(kernels.StoreKV, in.rows, 1, kernels.RowThreads(p.kvHeads*p.headDim))
}

func (p *program) attention(qkv, k, v, out cuda.DevicePtr, in tokenInputs) error {
	a := kernels.AttentionArgs{
		QKV: uint64(qkv), KCache: uint64(k), VCache: uint64(v), Out: uint64(out),
		BlockTables: uint64(in.tables), Sequences: uint64(in.sequences), Positions: uint64(in.positions),
		QHeads: int32(p.qHeads), KVHeads: int32(p.kvHeads), HeadDim: int32(p.headDim),
		BlockSize: int32(p.pageSize), MaxBlocks: int32(p.maxBlocks), Scale: float32(1 / math.Sqrt(float64(p.headDim))),
	}
	words := *(*[kernels.AttentionArgsSize / 8]uint64)(unsafe.Pointer(&a))
	p.args.Reset().Struct(words[:]...)
	return p.launch(kernels.Attention, in.rows, p.qHeads, kernels.AttentionThreads)
}
