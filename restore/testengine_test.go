package restore

import (
	"bytes"
	"debug/elf"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/live"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
)

// The test engine: small, but with everything that a graph can depend on. Its graph of batch b computes, for i < n = 64 b,
// out[i] = in[i] * 3 + kv[i] + magic + 1 through a temporary, with a fork and join:
//
//	memset(tmp tail) ──────────────────────────────┐
//	mix(tmp, in, kv, magic, n) ── more(tmp, n) ── memcpy(out, tmp)
//
// mix is in a module of its own, more in a hidden one; a library has functions of the same names; magic is a permanent buffer of the capture phase that holds the
// address of the word that mix adds up.

//go:embed testdata/visible.ptx
var visiblePTX []byte

//go:embed testdata/hidden.ptx
var hiddenPTX []byte

const (
	engineVariable = "RESTORE_TEST_ENGINE" // comma-separated deviations; "engine" if there are none
	bufferBytes    = 4096
	nativeKVBytes  = 8192
	magicValue     = 500
	dynamicShared  = cuda.FunctionAttribute(8) // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	sharedBytes    = 60000                     // of mix, if the engine asks for more shared memory than kernels have by default
)

// testBatches are the captured batch sizes.
var testBatches = []int64{1, 4, 16}

// indices of the test engine's allocations, in call order.
const (
	allocIn uint32 = iota
	allocScratch
	allocKV
	allocOut
	allocMagic // capture phase from here
	allocTmp
)

// testEngine runs the engine and returns the process's exit code.
func testEngine(deviations string) int {
	runtime.LockOSThread()
	e := &engine{deviations: "," + deviations + ","}
	err := e.start()
	var exit *Exit
	if errors.As(err, &exit) {
		return exit.Code
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		return 1
	}
	return 0
}

type engine struct {
	deviations       string
	session          *Session
	visible, hidden  cuda.Module
	twin             cuda.LibraryHandle
	in, kv, out, tmp cuda.DevicePtr
	magic, scratch   cuda.DevicePtr
	kvBytes          uint64
	stream, side     cuda.Stream
	execs            map[int64]cuda.GraphExec
	graphs           []*Graph
}

func (e *engine) deviates(how string) bool { return strings.Contains(e.deviations, ","+how+",") }

func (e *engine) start() (err error) {
	if e.deviates("gated") {
		time.AfterFunc(20*time.Second, func() { // a session that waits for its artifact would do so for ever
			fmt.Fprintln(os.Stderr, "engine: no context before the artifact was read")
			os.Exit(1)
		})
	}
	if e.session, err = FromEnv(Hooks{End: os.Exit}); err != nil {
		return err
	}
	if _, _, err := enginekit.Open(); err != nil {
		return err
	}
	if e.deviates("gated") {
		pipe, err := os.OpenFile(os.Getenv("MEDUSA_ARTIFACT"), os.O_WRONLY, 0)
		if err == nil {
			err = pipe.Close()
		}
		if err != nil {
			return err
		}
	}
	if e.deviates("describe") {
		return describeDevice()
	}
	version := "1"
	if e.deviates("version") {
		version = "2"
	}
	if err := e.session.Identify(artifacts.Identity{{Key: artifacts.KeyEngineName, Value: "test"}, {Key: artifacts.KeyEngineVersion, Value: version}}); err != nil {
		if e.session.Exit() != nil {
			return err
		}
		fmt.Println("identify:", err)
	}
	if err := e.structure(); err != nil {
		return err
	}
	for _, batch := range e.session.Triggers() {
		if err := e.session.Trigger(func() error { return e.trigger(batch) }); err != nil {
			if e.session.Exit() != nil {
				return err
			}
			fmt.Println("trigger:", err)
		}
	}
	if err := e.makeGraphs(); err != nil {
		return err
	}
	marks.Begin(marks.Ready)
	if e.deviates("dirty") { // skipped or extra work that leaves a difference
		if err := cuda.CopyToDevice(e.in+2048, []byte{1}); err != nil {
			return err
		}
	}
	if err := e.session.Ready(func() ([]byte, error) { return []byte("tokens"), nil }); err != nil {
		return err
	}
	if err := e.serve(); err != nil {
		return err
	}
	if err := e.rest(); err != nil {
		return err
	}
	return e.stop()
}

// device is the facts that the parent needs to write an artifact for this machine.
type device struct {
	Identity    artifacts.Identity
	Free, Total uint64
}

func describeDevice() error {
	var d device
	var err error
	if d.Identity, err = deviceFactors(); err != nil {
		return err
	}
	if d.Free, d.Total, err = cuda.MemInfo(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(d)
}

// structure makes the allocations that native and restored starts have in common.
func (e *engine) structure() (err error) {
	size := uint64(bufferBytes)
	if e.deviates("size") {
		size += 256
	}
	if e.in, err = cuda.MemAlloc(size); err != nil {
		return err
	}
	scratch, err := cuda.MemAlloc(512)
	if err != nil {
		return err
	}
	if e.deviates("frees") {
		e.scratch = scratch
	} else if err := scratch.Free(); err != nil {
		return err
	}
	var given bool
	if e.kvBytes, given = e.session.KVBytes(); !given {
		e.kvBytes = nativeKVBytes
		fmt.Println("kv: profiled")
	}
	if e.kv, err = e.allocateKV(); err != nil {
		return err
	}
	if e.out, err = cuda.MemAlloc(bufferBytes); err != nil {
		return err
	}
	for _, p := range []cuda.DevicePtr{e.in, e.out} { // fresh memory differs from process to process
		if err := cuda.MemsetAsync(p, 0, bufferBytes, 0); err != nil {
			return err
		}
	}
	if !e.deviates("nomodule") {
		if e.visible, err = cuda.ModuleLoadData(visiblePTX); err != nil {
			return err
		}
	}
	if e.deviates("shared") {
		mix, err := e.visible.Function("mix")
		if err == nil {
			err = mix.SetAttribute(dynamicShared, sharedBytes)
		}
		if err != nil {
			return err
		}
	}
	return enginekit.Streams(&e.stream, &e.side)
}

func (e *engine) trigger(int64) error {
	if e.deviates("triggerfails") {
		return errors.New("no such layer")
	}
	if e.deviates("notrigger") {
		return nil
	}
	if e.deviates("triggerfaults") {
		mix, err := e.visible.Function("mix")
		if err != nil {
			return err
		}
		args := cuda.NewArgs().Ptr(0).Ptr(0).Ptr(0).Ptr(0).I32(1)
		return errors.Join(mix.Launch(cuda.Dim3{1, 1, 1}, cuda.Dim3{1, 1, 1}, 0, e.stream, args), e.stream.Synchronize())
	}
	if err := e.loadHidden(); err != nil {
		return err
	}
	kernel, err := e.twin.Kernel("noop")
	if err != nil {
		return err
	}
	other, err := kernel.Function()
	if err != nil {
		return err
	}
	if err := other.Launch(cuda.Dim3{1, 1, 1}, cuda.Dim3{1, 1, 1}, 0, e.stream, cuda.NewArgs()); err != nil {
		return err
	}
	noop, err := e.hidden.Function("noop")
	if err != nil {
		return err
	}
	return noop.Launch(cuda.Dim3{1, 1, 1}, cuda.Dim3{1, 1, 1}, 0, e.stream, cuda.NewArgs())
}

func (e *engine) makeGraphs() error {
	e.execs = make(map[int64]cuda.GraphExec)
	if e.session.Run() == Restore {
		graphs, err := e.session.Graphs()
		if err == nil {
			for _, g := range graphs {
				e.execs[g.Batch()] = g.Built()
			}
			e.graphs = graphs
			return nil
		}
		if e.session.Exit() != nil {
			return err
		}
		fmt.Println("graphs:", err)
		if e.visible == 0 {
			if e.visible, err = cuda.ModuleLoadData(visiblePTX); err != nil {
				return err
			}
		}
	}
	marks.Begin(marks.WarmUp)
	if err := e.loadHidden(); err != nil {
		return err
	}
	var err error
	if e.magic, err = cuda.MemAlloc(16); err != nil {
		return err
	}
	if e.tmp, err = cuda.MemAlloc(2 * bufferBytes); err != nil {
		return err
	}
	if err := cuda.CopyToDevice(e.magic, magicBytes(uint64(e.magic))); err != nil {
		return err
	}
	marks.Begin(marks.Capture)
	for _, batch := range testBatches {
		if err := e.capture(batch); err != nil {
			return fmt.Errorf("capture batch %d: %w", batch, err)
		}
	}
	return nil
}

// magicBytes is the permanent buffer's contents: the word that mix adds, and a pointer to it.
func magicBytes(addr uint64) []byte {
	b := make([]byte, 16)
	binary.LittleEndian.PutUint32(b, magicValue)
	binary.LittleEndian.PutUint64(b[8:], addr)
	return b
}

func label(batch int64) string { return "decode-" + strconv.FormatInt(batch, 10) }

func (e *engine) capture(batch int64) error {
	marks.Graph(label(batch), int(batch))
	mix, err := e.visible.Function("mix")
	if err != nil {
		return err
	}
	more, err := e.hidden.Function("more")
	if err != nil {
		return err
	}
	var fork, join cuda.Event
	if err := enginekit.Events(&fork, &join); err != nil {
		return err
	}
	n, shared := int(64*batch), uint32(0)
	if e.deviates("shared") {
		shared = sharedBytes
	}
	grid, block := cuda.Dim3{uint32(batch), 1, 1}, cuda.Dim3{64, 1, 1}
	args := cuda.NewArgs()
	steps := []func() error{
		func() error { return fork.Record(e.stream) },
		func() error { return e.side.Wait(fork) },
		func() error { return cuda.MemsetAsync(e.tmp+bufferBytes, byte(batch), uint64(n), e.side) },
		func() error { return join.Record(e.side) },
		func() error {
			return mix.Launch(grid, block, shared, e.stream, args.Reset().Ptr(e.tmp).Ptr(e.in).Ptr(e.kv).Ptr(e.magic).I32(n))
		},
		func() error { return more.Launch(grid, block, 0, e.stream, args.Reset().Ptr(e.tmp).I32(n)) },
		func() error { return e.stream.Wait(join) },
		func() error { return cuda.CopyOnDeviceAsync(e.out, e.tmp, uint64(4*n), e.stream) },
	}
	e.execs[batch], err = enginekit.Capture(e.stream, cuda.CaptureThreadLocal, func() error { return enginekit.InOrder(steps...) })
	return errors.Join(err, fork.Destroy(), join.Destroy())
}

// serve runs every graph on known inputs and checks the results.
func (e *engine) serve() error {
	words := make([]byte, bufferBytes)
	for _, batch := range testBatches {
		n := int(64 * batch)
		for i := range bufferBytes / 4 {
			binary.LittleEndian.PutUint32(words[4*i:], uint32(i)+uint32(batch))
		}
		if err := errors.Join(cuda.CopyToDevice(e.in, words), cuda.CopyToDevice(e.kv, words)); err != nil {
			return err
		}
		if err := errors.Join(e.execs[batch].Launch(e.stream), e.stream.Synchronize()); err != nil {
			return e.session.Failed(err)
		}
		got := make([]byte, 4*n)
		if err := cuda.CopyToHost(got, e.out); err != nil {
			return err
		}
		for i := range n {
			want := 4*(uint32(i)+uint32(batch)) + magicValue + 1
			if v := binary.LittleEndian.Uint32(got[4*i:]); v != want {
				return fmt.Errorf("batch %d: out[%d] is %d, want %d", batch, i, v, want)
			}
		}
	}
	fmt.Println("served: correct")
	return nil
}

// stop gives back everything, so that any memory left at exit was leaked by the restorer.
func (e *engine) stop() error {
	errs := []error{e.session.Close()}
	if e.session.restored == nil && e.magic != 0 {
		for _, x := range e.execs {
			errs = append(errs, x.Destroy())
		}
		errs = append(errs, e.magic.Free(), e.tmp.Free())
	}
	errs = append(errs, e.in.Free(), e.freeKV(), e.out.Free(), e.stream.Destroy(), e.side.Destroy(), e.visible.Unload())
	if e.hidden != 0 {
		errs = append(errs, e.hidden.Unload(), e.twin.Unload())
	}
	return errors.Join(errs...)
}

// loadHidden loads the hidden module by the driver's own entry point, found in its symbol table: no hook sees that.
func (e *engine) loadHidden() error {
	if e.hidden != 0 {
		return nil
	}
	fn, err := driverSymbol("cuModuleLoadData")
	if err != nil {
		return err
	}
	image := append(append([]byte(nil), hiddenPTX...), 0)
	var m uint64
	c := contract.Call{Fn: fn, Nargs: 2, Arg: [8]uint64{uint64(uintptr(unsafe.Pointer(&m))), uint64(uintptr(unsafe.Pointer(&image[0])))}}
	var pin runtime.Pinner // the player follows the addresses inside of the call
	pin.Pin(&m)
	pin.Pin(&image[0])
	defer pin.Unpin()
	var failed uint64
	if r, err := live.Play.Invoke(uintptr(unsafe.Pointer(&c)), 1, uintptr(unsafe.Pointer(&failed))); err != nil || uint32(r) != 0 {
		return fmt.Errorf("load hidden module: result %d, %v", uint32(r), err)
	}
	e.hidden = cuda.Module(m)
	e.twin, err = cuda.LibraryLoadData(append(twinPTX(), 0))
	return err
}

// twinPTX is the hidden module's text with another constant: more: x[i] = x[i] + 77.
func twinPTX() []byte {
	return bytes.Replace(hiddenPTX, []byte("%r7, %r6, 1;"), []byte("%r7, %r6, 77;"), 1)
}

func driverSymbol(name string) (uint64, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.Contains(fields[5], "libcuda.so") {
			continue
		}
		start, _, _ := strings.Cut(fields[0], "-")
		base, err := strconv.ParseUint(start, 16, 64)
		if err != nil {
			return 0, err
		}
		f, err := elf.Open(fields[5])
		if err != nil {
			return 0, err
		}
		defer f.Close()
		symbols, err := f.DynamicSymbols()
		if err != nil {
			return 0, err
		}
		for _, s := range symbols {
			if s.Name == name {
				return base + s.Value, nil
			}
		}
	}
	return 0, fmt.Errorf("find %s: no driver is mapped", name)
}

// testSpec is the test engine's graph IR, written by hand.
func testSpec() *graphir.Spec {
	alloc := func(owner graphir.Owner, size uint64, live bool) graphir.Allocation {
		return graphir.Allocation{Kind: graphir.AllocDevice, Owner: owner, Size: size, Live: live}
	}
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{
			allocIn:      alloc(graphir.OwnerEngine, bufferBytes, true),
			allocScratch: alloc(graphir.OwnerEngine, 512, false),
			allocKV:      alloc(graphir.OwnerEngine, nativeKVBytes, true),
			allocOut:     alloc(graphir.OwnerEngine, bufferBytes, true),
			allocMagic:   alloc(graphir.OwnerGraph, 16, true),
			allocTmp:     alloc(graphir.OwnerGraph, 2*bufferBytes, true),
		},
		Sequence: []graphir.Step{{Alloc: allocIn}, {Alloc: allocScratch}, {Free: true, Alloc: allocScratch}, {Alloc: allocKV}, {Alloc: allocOut},
			{Alloc: allocMagic}, {Alloc: allocTmp}},
		Modules: []graphir.Module{
			{Kind: graphir.ModuleLoaded, ImageSHA256: sha256Of(visiblePTX), ImageSize: uint64(len(visiblePTX)), Functions: []string{"mix", "more"}},
			{Kind: graphir.ModuleHidden, Functions: []string{"more", "noop"}},
			{Kind: graphir.ModuleLibrary, ImageSHA256: sha256Of(twinPTX()), ImageSize: uint64(len(twinPTX())), Functions: []string{"more", "noop"}},
		},
		Kernels: []graphir.Kernel{
			{Name: "mix", Module: 0, Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 8}, {Offset: 16, Size: 8}, {Offset: 24, Size: 8}, {Offset: 32, Size: 4}}},
			{Name: "more", Module: 1, Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}}},
		},
		Contents: []graphir.Content{{Alloc: allocMagic, Data: magicBytes(0), Relocations: []graphir.Relocation{{Offset: 8, Pointer: graphir.Pointer{Index: allocMagic}}}}},
		Tensors: []graphir.Tensor{
			{Name: "in", Role: graphir.RoleInput, DType: graphir.I32, At: graphir.Pointer{Index: allocIn}, Size: 2048, Shape: []int64{512}, Hi: 1000, Distinct: true},
			{Name: "kv", Role: graphir.RoleKV, DType: graphir.F32, At: graphir.Pointer{Index: allocKV}, Size: nativeKVBytes, Shape: []int64{nativeKVBytes / 4}},
			{Name: "out", Role: graphir.RoleOutput, DType: graphir.F32, At: graphir.Pointer{Index: allocOut}, Size: bufferBytes, Shape: []int64{bufferBytes / 4}},
		},
		Triggers: []graphir.Trigger{{Batch: 1, Kernels: []uint32{1}}},
	}
	for _, batch := range testBatches {
		spec.Graphs = append(spec.Graphs, testGraph(batch))
	}
	return spec
}

func testGraph(batch int64) graphir.Graph {
	n := uint32(64 * batch)
	grid, block := [3]uint32{uint32(batch), 1, 1}, [3]uint32{64, 1, 1}
	mix := make([]byte, 40)
	binary.LittleEndian.PutUint32(mix[32:], n)
	more := make([]byte, 16)
	binary.LittleEndian.PutUint32(more[8:], n)
	relocations := func(allocs ...uint32) []graphir.Relocation {
		var out []graphir.Relocation
		for i, a := range allocs {
			out = append(out, graphir.Relocation{Offset: uint32(8 * i), Pointer: graphir.Pointer{Index: a}})
		}
		return out
	}
	return graphir.Graph{
		Label: label(batch), Batch: batch,
		Nodes: []graphir.Node{
			{Type: graphir.NodeMemset, Params: &graphir.MemsetNode{Dst: graphir.Pointer{Index: allocTmp, Offset: bufferBytes}, Value: uint32(batch), ElemSize: 1, Width: uint64(n), Height: 1}},
			{Type: graphir.NodeKernel, Params: &graphir.KernelNode{Kernel: 0, Grid: grid, Block: block, Params: mix, Relocations: relocations(allocTmp, allocIn, allocKV, allocMagic)}},
			{Type: graphir.NodeKernel, Params: &graphir.KernelNode{Kernel: 1, Grid: grid, Block: block, Params: more, Relocations: relocations(allocTmp)}},
			{Type: graphir.NodeMemcpy, Params: &graphir.MemcpyNode{
				Src: graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: allocTmp}}, Dst: graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: allocOut}},
				Width: uint64(4 * n), Height: 1, Depth: 1}},
		},
		Edges: []graphir.Edge{{From: 0, To: 3}, {From: 1, To: 2}, {From: 2, To: 3}},
	}
}
