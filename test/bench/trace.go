package bench

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"medusa/interpose/trace"
	"medusa/test/tracewriter"
)

// WriteTrace writes the trace of recording run number run (0 is A, 1 is B) of the workload. Memory of the runs lies at other
// places, each allocation moved against its neighbours; all else is equal.
func (w Workload) WriteTrace(path string, run int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write trace of %s: %w", w.Name, err)
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	buffered := bufio.NewWriterSize(f, 1<<20)
	if err := w.write(buffered, run); err != nil {
		return err
	}
	return buffered.Flush()
}

func (w Workload) write(out io.Writer, run int) error {
	r := &recorder{Workload: w, Writer: tracewriter.New(out), run: uint64(run), random: rand.New(rand.NewPCG(7, uint64(len(w.Batches))))}
	r.Write(&trace.Process{Protocol: 1, PID: 1, GapSeed: uint64(run)})
	r.Write(&trace.Device{Name: "Simulated GPU", CCMajor: 9, TotalMem: 80 << 30, Driver: 12080})
	r.phase("structure")
	r.phase("kv_cache")
	for range w.Layers {
		r.alloc(256 << 20)
	}
	r.phase("weights")
	for range w.Layers*weightsPerLayer + 3 {
		r.alloc(32 << 20)
	}
	r.inputs = r.alloc(1 << 20)
	r.functions()
	r.phase("warmup")
	r.pool = r.alloc(512 << 20)
	r.phase("capture")
	for i, batch := range w.Batches {
		r.graph(i, batch)
	}
	r.phase("ready")
	return r.End()
}

const (
	weightsPerLayer = 7
	kernelsPerLayer = 11
	gemmClasses     = 6 // each range of batch sizes has its matrix product
	base            = 0x7f0000000000
)

// gemm tells which kernels of a layer are matrix products.
var gemm = [kernelsPerLayer]bool{1: true, 6: true, 8: true, 10: true}

type recorder struct {
	Workload
	*tracewriter.Writer
	run          uint64
	random       *rand.Rand
	places       []uint64 // of the allocations in this run
	next         uint64
	inputs, pool uint32
	node         uint64
}

func (r *recorder) phase(name string) { r.Write(&trace.Phase{Name: name}) }

func (r *recorder) alloc(size uint64) uint32 {
	id := uint32(len(r.places))
	// The run record-b has another base and other gaps.
	at := base + r.run<<44 + r.next
	r.next += size + (1+r.run*(uint64(id)%5+1))<<21
	r.places = append(r.places, at)
	r.Write(&trace.Alloc{ID: id, Kind: trace.AllocDevice, Addr: at, Size: size})
	return id
}

// mostPointers is the largest number of pointers that a kernel takes here.
const mostPointers = 6

// function numbers the kernel of a place in a layer that takes so many pointers. Each is there in every class.
func function(place, pointers, class int) uint32 {
	if !gemm[place] {
		class = 0
	}
	return uint32((place*(mostPointers+1)+pointers)*gemmClasses + class)
}

// kernelName names the kernel of function.
func kernelName(place, pointers, class int) string {
	if !gemm[place] {
		class = 0
	}
	return fmt.Sprintf("_ZN5bench%02dkernel_of_a_layer_%d_%dEvPKvS1_Pv", place, pointers, class)
}

// layout returns a kernel's parameters: pointers first, then numbers, more of them for matrix products.
func layout(place, pointers int) (params []trace.FunctionParam, size uint32) {
	numbers := 6
	if gemm[place] {
		numbers = 12
	}
	for i := range pointers + numbers {
		width := uint32(8)
		if i >= pointers {
			width = 4
		}
		params = append(params, trace.FunctionParam{Offset: size, Size: width})
		size += width
	}
	return params, size
}

func (r *recorder) functions() {
	image := make([]byte, 32)
	image[0] = 1
	r.Write(&trace.Module{ID: 0, Kind: trace.ModuleModule, Handle: 16 + r.run, SHA256: image, ImageSize: 1 << 20})
	var all []*trace.Function
	var names []string
	for place := range kernelsPerLayer {
		for pointers := range mostPointers + 1 {
			for class := range gemmClasses {
				id := function(place, pointers, class)
				if class > 0 && !gemm[place] {
					continue
				}
				f := &trace.Function{ID: id, Handle: 4096 + uint64(id), Name: kernelName(place, pointers, class)}
				f.Params, _ = layout(place, pointers)
				all, names = append(all, f), append(names, f.Name)
			}
		}
	}
	r.Write(&trace.Names{Module: 0, Names: names})
	for _, f := range all {
		r.Write(f)
	}
}

// graph records one graph: a chain of kernels in which layers repeat. The graphs of one shape begin with as many memset
// nodes as the shape has in number.
func (r *recorder) graph(i int, batch int64) {
	nodes := share(r.Nodes, len(r.Batches), i)
	pointers := share(r.Pointers, len(r.Batches), i)
	memsets := r.memsets(i)
	id := uint32(i)
	r.Write(&trace.Graph{ID: id, Handle: uint64(i) + 1, Label: fmt.Sprintf("decode-%d", batch), Batch: batch, Nodes: uint32(nodes), Edges: uint32(nodes - 1)})
	first := r.node
	for k := range memsets {
		r.node++
		r.Write(&trace.Memset{Graph: id, Node: r.handle(r.node), Dst: r.places[r.pool] + uint64(k)*4096, ElemSize: 4, Width: 256, Height: 1})
	}
	pointers -= memsets
	for k := range nodes - memsets {
		r.node++
		r.kernel(id, k, batch, share(pointers, nodes-memsets, k))
	}
	for k := range uint64(nodes - 1) {
		r.Write(&trace.Edge{Graph: id, From: r.handle(first + 1 + k), To: r.handle(first + 2 + k)})
	}
	r.Write(&trace.Exec{Graph: id, Handle: uint64(i) + 1})
}

func (r *recorder) handle(node uint64) uint64 { return (r.run+1)<<40 + node*64 }

func (r *recorder) kernel(graph uint32, k int, batch int64, pointers int) {
	place, layer := k%kernelsPerLayer, k/kernelsPerLayer%r.Layers
	class := r.class(batch)
	x := uint32(place + 1)
	_, size := layout(place, pointers)
	params := make([]byte, size)
	for i := range pointers {
		binary.LittleEndian.PutUint64(params[8*i:], r.pointer(i, place, layer))
	}
	for i, at := 0, uint32(8*pointers); at < size; i, at = i+1, at+4 {
		value := x * uint32(i)
		if i < 2 {
			value = x * uint32(batch)
		}
		binary.LittleEndian.PutUint32(params[at:], value)
	}
	r.Write(&trace.Kernel{Graph: graph, Node: r.handle(r.node), Function: function(place, pointers, class),
		Grid: []uint32{uint32(batch) * x, 1, 1}, Block: []uint32{128, 1, 1}, Params: params})
}

// pointer is the i-th pointer of a kernel: a weight or the KV cache first, then an input, then temporaries. A caching
// allocator hands out any free block, so no pattern of theirs survives from graph to graph.
func (r *recorder) pointer(i, place, layer int) uint64 {
	switch {
	case i == 0 && (place == 3 || place == 4 || place == 5):
		return r.places[layer]
	case i == 0:
		return r.places[r.Layers+weightsPerLayer*layer+place%weightsPerLayer]
	case i == 1 && place < 5:
		return r.places[r.inputs] + uint64(place)*4096
	}
	return r.places[r.pool] + r.random.Uint64N(1<<20)*512
}
