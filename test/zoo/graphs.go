package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
)

//go:embed zoo.ptx
var zooPTX []byte

const (
	elements = 1024 // floats in every buffer
	size     = elements * 4
	magic    = 0x5eedc0de
	metadata = "metadata" // the magic value's name
	weights  = 4
)

// zoo holds the engine's device state.
type zoo struct {
	session        *restore.Session
	stream, side   cuda.Stream
	forked, joined cuda.Event
	external       cuda.Event // ZOO_EVENTS=1: recorded by the graph fork as its last node, for waiters outside of it
	module         cuda.Module
	lateModule     cuda.Module
	args           *cuda.Args

	axpy, add, gather, guarded, tag, late cuda.Function

	weights                     [weights]cuda.DevicePtr
	input, output, scratch      cuda.DevicePtr
	cache                       cuda.DevicePtr
	arena, table, magic, reused cuda.DevicePtr // graph-owned: allocated in the capture phase

	// ZOO_ALLOCATOR: "" for an allocation a tensor; "caching" for all tensors from caching; "unnamed" for the same without a name
	// for one of them; "freed" for a graph that uses a block its owner gave back; "followed" and "left" for one with such a block's
	// address in a by-value struct, of a launch that reads there or does not.
	mode    string
	caching caching
	freed   cuda.DevicePtr

	// ZOO_METADATA: "hidden" or "named": the magic value is the engine's to change between replays, and whether Medusa
	// is told so.
	metadata string

	harsh      harsh
	library    library
	peer       peer
	checkpoint checkpoint

	native   map[int64]cuda.GraphExec
	restored map[int64]*restore.Graph
}

func (z *zoo) open() error {
	_, _, err := enginekit.Open()
	if err != nil {
		return err
	}
	if err := errors.Join(enginekit.Streams(&z.stream, &z.side), enginekit.Events(&z.forked, &z.joined)); err != nil {
		return err
	}
	if os.Getenv("ZOO_EVENTS") == "1" {
		if z.external, err = cuda.EventCreate(cuda.EventDisableTiming); err != nil {
			return err
		}
	}
	z.args = cuda.NewArgs()
	return z.loadModule()
}

func (z *zoo) loadModule() (err error) {
	if z.module, err = cuda.ModuleLoadData(append(zooPTX, 0)); err != nil {
		return err
	}
	return enginekit.Functions(z.module, map[string]*cuda.Function{"axpy": &z.axpy, "add": &z.add, "gather": &z.gather, "guarded": &z.guarded, "tag": &z.tag})
}

func (z *zoo) allocate() (err error) {
	allocate := cuda.MemAlloc
	if z.mode = os.Getenv("ZOO_ALLOCATOR"); z.mode != "" {
		z.caching.high = os.Getenv("ZOO_TIES") == "high"
		allocate = z.caching.allocate
		if err := z.caching.tie(); err != nil {
			return err
		}
	}
	z.metadata = os.Getenv("ZOO_METADATA")
	schedule, twins := os.Getenv("ZOO_THREADS"), os.Getenv("ZOO_TWINS") != ""
	if schedule != "" {
		if err := z.allocateByThreads(schedule, twins); err != nil {
			return err
		}
	}
	if err := freeTogether(os.Getenv("ZOO_FREES")); err != nil {
		return err
	}
	for i := range z.weights {
		if schedule != "" {
			break
		}
		if err := pin(os.Getenv("ZOO_PINNED"), i); err != nil {
			return err
		}
		if z.weights[i], err = allocate(size); err != nil {
			return err
		}
		if (z.mode != "" || z.checkpoint.number != 0) && (z.mode != "unnamed" || i != 1) {
			marks.Named(marks.Tensor{Name: fmt.Sprintf("weight.%d", i), Addr: z.weights[i], Size: size, Role: marks.Weight, DType: marks.F32})
		}
	}
	for _, p := range []*cuda.DevicePtr{&z.input, &z.output, &z.scratch} {
		if *p, err = allocate(size); err != nil {
			return err
		}
	}
	if z.mode == "freed" || z.mode == "followed" || z.mode == "left" {
		if z.freed, err = allocate(size); err != nil {
			return err
		}
		z.caching.release(z.freed, size)
	}
	marks.Named(marks.Tensor{Name: "input", Addr: z.input, Size: size, Role: marks.Input, DType: marks.F32})
	marks.Named(marks.Tensor{Name: "output", Addr: z.output, Size: size, Role: marks.Output, DType: marks.F32})
	return errors.Join(z.harsh.allocate(), z.allocateLibrary())
}

func (z *zoo) fillWeights() error {
	for i, w := range z.weights {
		if err := cuda.CopyToDevice(w, floats(func(k int) float32 { return float32((k*7+i*13+rank()*5+z.checkpoint.number*(k%5))%97) / 97 })); err != nil {
			return err
		}
	}
	return cuda.CopyToDevice(z.scratch, make([]byte, size))
}

// captureAll is warm-up and capture: a restored start skips them.
func (z *zoo) captureAll() (err error) {
	if err := errors.Join(z.loadLate(), z.warm(), z.product()); err != nil {
		return err
	}
	// The warm-up's buffer is freed, and the capture's gets its address: the paper's Figure 6.
	first, err := cuda.MemAlloc(size)
	if err != nil {
		return err
	}
	if err := z.launch(z.late, z.args.Reset().Ptr(z.scratch).F32(1).I32(elements)); err != nil {
		return err
	}
	if err := z.stream.Synchronize(); err != nil {
		return err
	}
	if err := first.Free(); err != nil {
		return err
	}
	if z.reused, err = cuda.MemAlloc(size); err != nil {
		return err
	}
	if z.arena, err = cuda.MemAlloc(4 * size); err != nil {
		return err
	}
	if z.table, err = cuda.MemAlloc(weights * 8); err != nil {
		return err
	}
	if z.magic, err = cuda.MemAlloc(4); err != nil {
		return err
	}
	var table []byte
	for i, w := range z.weights {
		if i == 0 && z.peer.kind == "table" {
			w = z.peer.foreign
		}
		table = binary.LittleEndian.AppendUint64(table, uint64(w))
	}
	if err := cuda.CopyToDevice(z.table, table); err != nil {
		return err
	}
	if err := cuda.CopyToDevice(z.magic, binary.LittleEndian.AppendUint32(nil, magic)); err != nil {
		return err
	}
	if z.metadata == "named" {
		marks.Named(marks.Tensor{Name: metadata, Addr: z.magic, Size: 4, Role: marks.Input, DType: marks.I32, Lo: magic, Hi: magic + 1})
	}
	if err := z.checkpoint.fill(); err != nil {
		return err
	}
	marks.Begin(marks.Capture)
	z.native = map[int64]cuda.GraphExec{}
	for batch, body := range []func() error{z.fork, z.nested} {
		if err := z.capture(int64(batch+1), []string{"fork", "nested"}[batch], body); err != nil {
			return err
		}
	}
	if err := z.captureHarsh(); err != nil {
		return err
	}
	if err := z.dropBlock(); err != nil {
		return err
	}
	// The arena's blocks are scratch between replays, as a framework's allocator would say.
	marks.Block(z.arena, 4*size, true)
	marks.Block(z.arena, 4*size, false)
	return nil
}

func (z *zoo) capture(batch int64, label string, body func() error) error {
	marks.Graph(label, int(batch))
	exec, err := enginekit.Capture(z.stream, cuda.CaptureGlobal, body)
	if err != nil {
		return err
	}
	z.native[batch] = exec
	return exec.Upload(z.stream)
}

// fork runs two branches whose results do not survive a missing edge: each step of a branch rewrites the result of the one
// before it, and the join reads both.
func (z *zoo) fork() error {
	t1, t2, t3 := z.arena, z.arena+size, z.arena+2*size
	if z.mode == "freed" {
		t3 = z.freed
	}
	steps := []func() error{
		func() error {
			return z.on(z.stream, z.add, z.args.Reset().Ptr(z.input).Ptr(z.weights[0]).Ptr(t1).I32(elements))
		},
		func() error { return z.forked.Record(z.stream) },
		func() error { return z.side.Wait(z.forked) },
		func() error { return cuda.MemsetAsync(t2, 0, size, z.side) },
		func() error { return z.on(z.side, z.axpy, z.args.Reset().Struct(axpyArgs(z.weights[1], t2, 2)...)) },
		func() error {
			return z.on(z.side, z.axpy, z.args.Reset().Struct(axpyArgs(t1, t2, float32(3+rank()))...))
		},
		func() error { return z.joined.Record(z.side) },
		func() error { return cuda.CopyOnDeviceAsync(t3, t1, size, z.stream) },
		func() error {
			return z.on(z.stream, z.late, z.args.Reset().Ptr(t3).F32(z.checkpoint.bake("parameter", 0.5)).I32(elements))
		},
		func() error { return z.stream.Wait(z.joined) },
		func() error { return z.on(z.stream, z.add, z.args.Reset().Ptr(t2).Ptr(t3).Ptr(z.output).I32(elements)) },
		func() error {
			return z.on(z.stream, z.axpy, z.args.Reset().Struct(axpyArgs(z.output, z.cache+size, z.checkpoint.bake("struct", 0.125))...))
		},
	}
	steps = append(steps, z.checkpoint.nodes(z)...)
	if z.library.kind == "stray" {
		steps = append(steps, func() error {
			return z.on(z.stream, z.add, z.args.Reset().Ptr(z.output).Ptr(z.library.block).Ptr(z.output).I32(elements))
		})
	}
	for mode, read := range map[string]uint64{"followed": elements, "left": 0} {
		if z.mode == mode {
			steps = append(steps, func() error {
				return z.on(z.stream, z.axpy, z.args.Reset().Struct(uint64(z.freed), uint64(z.output), uint64(math.Float32bits(0.5))|read<<32))
			})
		}
	}
	// This half of the cache holds zeros when the engine serves.
	steps = append(steps, func() error {
		return z.on(z.stream, z.axpy, z.args.Reset().Struct(axpyArgs(z.cache, z.output, 2)...))
	})
	if z.peer.kind == "graph" {
		steps = append(steps, func() error {
			return z.on(z.stream, z.axpy, z.args.Reset().Struct(axpyArgs(z.peer.foreign, z.output, 1)...))
		})
	}
	if z.external != 0 {
		steps = append(steps, func() error {
			return z.external.RecordWithFlags(z.stream, cuda.EventExternal)
		})
	}
	return enginekit.InOrder(steps...)
}

// nested reads a table of pointers in device memory, a permanent buffer, a reused address and a 64-bit constant.
func (z *zoo) nested() error {
	return enginekit.InOrder(
		func() error { return cuda.CopyOnDeviceAsync(z.reused, z.input, size, z.stream) },
		func() error {
			return z.on(z.stream, z.gather, z.args.Reset().Ptr(z.table).I32(weights).Ptr(z.reused).I32(elements))
		},
		func() error {
			return z.on(z.stream, z.guarded, z.args.Reset().Ptr(z.magic).Ptr(z.reused).I32(elements))
		},
		func() error {
			return z.on(z.stream, z.tag, z.args.Reset().Ptr(z.reused).U64(0x0123456789abcdef).I32(elements))
		},
		func() error {
			return z.on(z.stream, z.add, z.args.Reset().Ptr(z.reused).Ptr(z.cache+size).Ptr(z.output).I32(elements))
		},
		func() error {
			return z.stream.BatchMemOp([]cuda.MemOp{
				{Operation: cuda.MemOpWrite64, Address: z.output + 32, Value: uint64(math.Float32bits(2.5))<<32 | uint64(math.Float32bits(-1))},
				{Operation: cuda.MemOpWrite32, Address: z.output + 16, Value: uint64(math.Float32bits(1.5))},
				{Operation: cuda.MemOpWait32, Address: z.output + 16, Value: uint64(math.Float32bits(1.5)), Flags: cuda.WaitEqual},
			})
		},
	)
}

func axpyArgs(x, y cuda.DevicePtr, a float32) []uint64 {
	return []uint64{uint64(x), uint64(y), uint64(math.Float32bits(a)) | elements<<32}
}

func (z *zoo) launch(f cuda.Function, args *cuda.Args) error { return z.on(z.stream, f, args) }

func (z *zoo) on(s cuda.Stream, f cuda.Function, args *cuda.Args) error {
	return f.Launch(cuda.Dim3{elements / 128, 1, 1}, cuda.Dim3{128, 1, 1}, 0, s, args)
}

// serve replays both graphs several times on changing input and returns the hash of all outputs. The session judges every error: a
// restored graph may have cost the process its device.
func (z *zoo) serve() (string, error) {
	out, err := z.replayAll()
	if err != nil {
		return "", z.session.Failed(err)
	}
	return out, nil
}

func (z *zoo) replayAll() (string, error) {
	sum := sha256.New()
	host := make([]byte, size)
	for round := range 4 {
		for batch := int64(1); batch <= 2; batch++ {
			if err := cuda.CopyToDevice(z.input, floats(func(k int) float32 { return float32((k+round*31)%53) / 53 })); err != nil {
				return "", err
			}
			if err := z.writeMetadata(round); err != nil {
				return "", err
			}
			if round == 2 && batch == 1 && os.Getenv("ZOO_RELOAD") != "" {
				if err := z.reload(); err != nil {
					return "", err
				}
			}
			if err := z.replay(batch); err != nil {
				return "", err
			}
			if err := z.await(batch); err != nil {
				return "", err
			}
			if err := cuda.CopyToHost(host, z.output); err != nil {
				return "", err
			}
			sum.Write(host)
		}
	}
	if z.harsh.kind != "" {
		rows, err := z.serveHarsh()
		if err != nil {
			return "", err
		}
		sum.Write([]byte(rows))
	}
	shared, err := z.peer.serve(z)
	if err != nil {
		return "", err
	}
	sum.Write(shared)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// await waits for a replay: by the event that the graph records, if it does.
func (z *zoo) await(batch int64) error {
	if batch == 1 && z.external != 0 {
		return z.external.Synchronize()
	}
	return z.stream.Synchronize()
}

// writeMetadata spoils the magic value in every second round.
func (z *zoo) writeMetadata(round int) error {
	if z.metadata == "" {
		return nil
	}
	if z.restored != nil && z.magic == 0 {
		var ok bool
		if z.magic, ok = z.session.Tensor(metadata); !ok {
			return fmt.Errorf("write metadata: nobody knows where it lies")
		}
	}
	return cuda.CopyToDevice(z.magic, binary.LittleEndian.AppendUint32(nil, magic+uint32(round&1)))
}

// reload changes the memory that the graphs refer to, and captures here those that were captured here. ZOO_RELOAD: "1" puts a weight
// elsewhere, as an engine does that wakes from sleep; "module" unloads the kernels' module and loads it again; "event" does so
// to an event that a graph records.
func (z *zoo) reload() (err error) {
	switch os.Getenv("ZOO_RELOAD") {
	case "module":
		if err := z.module.Unload(); err != nil {
			return err
		}
		err = z.loadModule()
	case "event":
		if err := z.external.Destroy(); err != nil {
			return err
		}
		z.external, err = cuda.EventCreate(cuda.EventDisableTiming)
	default:
		err = z.moveWeight()
	}
	if err != nil || z.restored != nil {
		return err
	}
	return z.captureAll()
}

func (z *zoo) moveWeight() (err error) {
	if err := z.weights[0].Free(); err != nil {
		return err
	}
	if z.weights[0], err = cuda.MemAlloc(16 * size); err != nil {
		return err
	}
	return z.fillWeights()
}

func (z *zoo) replay(batch int64) error {
	if z.restored != nil {
		g := z.restored[batch]
		if g == nil {
			return fmt.Errorf("replay batch %d: the artifact has no graph for it", batch)
		}
		err := g.Launch(z.stream)
		var invalid *restore.InvalidError
		if !errors.As(err, &invalid) {
			return err
		}
		fmt.Fprintln(os.Stderr, "zoo:", err)
		z.restored = nil
		if err := z.captureAll(); err != nil {
			return err
		}
	}
	return z.native[batch].Launch(z.stream)
}

func floats(f func(k int) float32) []byte {
	v := make([]float32, elements)
	for k := range v {
		v[k] = f(k)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), size)
}
