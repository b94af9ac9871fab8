package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"

	"medusa/internal/cuda"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
)

//go:embed harsh.ptx
var harshPTX []byte

// harsh are graphs that real engines have and that a check of memory alone takes for good ones. ZOO_HARSH chooses:
//
//	stale      two graphs read how many rows there are from one buffer, which the engine writes before each replay; most rows
//	           of the larger one are not computed with the number that the smaller one left there
//	direct     the same, whose kernel writes the declared output itself
//	stepped    the same, whose output has no rows that Medusa knows of, and the engine can make the step without a graph
//	prepared   as stale, and the engine tells Medusa how to write the buffer
//	temporary  the output depends on memory that is never written
//	spread     all of the output depends on whether memory that is never written holds numbers
//	nan        the output holds no numbers
//	rare       three kernels add to the same elements in an order that rarely differs
//	sum        the same elements, of which each replay adds some in another order
//	deaf       the output is the same with any inputs
//	flags      the same, and the inputs are flags that are always zero
//	forgetful  the output is the same with any KV cache
//	far        the output depends on a part of a large KV cache that a check does not look at, and that serving writes
//	drift      a kernel without effect has another weight as its parameter in a native start that checks
//	misled     a kernel adds another weight to the output in a native start that checks: a pointer in a struct
//	leftover   the same, of a kernel that does not follow the pointer, as bytes that are never written can be a pointer
//	filled     a weight that captures fill, and that a restored start fills if it is checked
//	renewed    the same as an input, which the engine fills before each replay
//	told       the same, and only the run profile says that it is an input, when it has served
//	scratch    the same as scratch, and the graph writes it before it reads it
//	kept       the same, and the graph only reads it
//	endless    a kernel waits for a value that only the engine writes
type harsh struct {
	kind                                string
	module                              cuda.Module
	tiles, normalise, accumulate, await cuda.Function
	word                                cuda.DevicePtr // the number of rows, or the flag that await waits for
	rows                                cuda.DevicePtr // the output
	filled                              cuda.DevicePtr // by captures
}

const rowElements = 128

// far is a place in a KV cache of 128 MiB that a check does not look at: between two chunks of 64 KiB, every fifth of which it takes.
const far = 66 << 20

// batches of the harsh graphs, in the order in which they are captured.
func (h *harsh) batches() []int64 {
	switch h.kind {
	case "":
		return nil
	case "stale", "direct", "stepped", "prepared":
		return []int64{8, 3}
	}
	return []int64{8}
}

func (h *harsh) label(batch int64) string { return fmt.Sprintf("%s-%d", h.kind, batch) }

// allocate makes the objects that the engine has before the capture phase.
func (h *harsh) allocate() (err error) {
	if h.kind = os.Getenv("ZOO_HARSH"); h.kind == "" {
		return nil
	}
	if h.module, err = cuda.ModuleLoadData(append(harshPTX, 0)); err != nil {
		return err
	}
	err = enginekit.Functions(h.module, map[string]*cuda.Function{"tiles": &h.tiles, "normalise": &h.normalise, "accumulate": &h.accumulate, "await": &h.await})
	if err != nil {
		return err
	}
	if h.word, err = cuda.MemAlloc(4); err != nil {
		return err
	}
	if h.rows, err = cuda.MemAlloc(size); err != nil {
		return err
	}
	shape := []int{elements / rowElements, rowElements}
	if h.kind == "stepped" { // rows last: those of a batch are no contiguous bytes
		shape = []int{16, elements / 16}
	}
	marks.Named(marks.Tensor{Name: "rows", Addr: h.rows, Size: size, Role: marks.Output, DType: marks.F32, Shape: shape})
	switch h.kind { // no graph does its work with such a value
	case "endless":
		marks.Named(marks.Tensor{Name: "flag", Addr: h.word, Size: 4, Role: marks.Input, DType: marks.I32, Lo: 2, Hi: 1000})
	case "prepared":
		marks.Named(marks.Tensor{Name: "rows of a batch", Addr: h.word, Size: 4, Role: marks.Input, DType: marks.I32, Lo: 1, Hi: 3})
	}
	if role := padding[h.kind]; role != 0 {
		if h.filled, err = cuda.MemAlloc(size); err != nil {
			return err
		}
		h.name(role)
		if err := cuda.CopyToDevice(h.filled, make([]byte, size)); err != nil {
			return err
		}
	}
	return h.settle()
}

// padding is the role of a tensor that some kinds have besides.
var padding = map[string]marks.Role{
	"filled": marks.Weight, "told": marks.Weight, "renewed": marks.Input, "flags": marks.Input, "scratch": marks.Scratch, "kept": marks.Scratch,
}

func (h *harsh) name(role marks.Role) {
	t := marks.Tensor{Name: "padding", Addr: h.filled, Size: size, Role: role, DType: marks.F32}
	if h.kind == "flags" {
		t.DType, t.Hi = marks.I32, 1
	}
	marks.Named(t)
}

// fill writes the tensor. Captures do that, and a restored start that is checked, so that it has the contents of a native one.
func (h *harsh) fill() error {
	if h.filled == 0 {
		return nil
	}
	return h.write(h.filled)
}

// write fills a tensor with numbers that are not zero.
func (h *harsh) write(to cuda.DevicePtr) error {
	return cuda.CopyToDevice(to, bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), elements))
}

// renew writes the tensor before each replay, if the engine knows that the graphs read it.
func (h *harsh) renew() error {
	if h.kind != "renewed" && h.kind != "told" {
		return nil
	}
	return h.fill()
}

// prepare writes the value that the graph of a batch expects.
func (h *harsh) prepare(batch int64) error {
	value := uint32(batch)
	if h.kind == "endless" {
		value = 1
	}
	return cuda.CopyToDevice(h.word, binary.LittleEndian.AppendUint32(nil, value))
}

// settle leaves the value that the smallest graph expects, in every start.
func (h *harsh) settle() error {
	batches := h.batches()
	if len(batches) == 0 {
		return nil
	}
	return h.prepare(batches[len(batches)-1])
}

// beforeReplay is called by Medusa before it replays a graph. It needs memory for a while.
func (h *harsh) beforeReplay(label string) error {
	scratch, err := cuda.MemAlloc(size)
	if err != nil {
		return err
	}
	defer func() { _ = scratch.Free() }()
	for _, batch := range h.batches() {
		if label == h.label(batch) {
			return h.prepare(batch)
		}
	}
	return nil
}

func (z *zoo) captureHarsh() error {
	h := &z.harsh
	if err := h.fill(); err != nil {
		return err
	}
	for _, batch := range h.batches() {
		if err := h.prepare(batch); err != nil {
			return err
		}
		if err := z.capture(batch, h.label(batch), func() error { return z.harshBody(batch) }); err != nil {
			return err
		}
	}
	if h.kind == "told" && os.Getenv("MEDUSA_RUN") == "profile" {
		h.name(marks.Input)
	}
	return h.settle()
}

// harshStep makes the step of a graph without one.
func (z *zoo) harshStep(label string) error {
	for _, batch := range z.harsh.batches() {
		if label == z.harsh.label(batch) {
			return errors.Join(z.harsh.prepare(batch), z.harshBody(batch), z.stream.Synchronize())
		}
	}
	return nil
}

func (z *zoo) harshBody(batch int64) error {
	h, never := &z.harsh, z.arena+3*size // memory that is never written
	args := z.args.Reset
	switch h.kind {
	case "stale", "prepared":
		return enginekit.InOrder(
			func() error { return z.launch(h.tiles, args().Ptr(h.word).Ptr(z.input).Ptr(never)) },
			func() error {
				return z.launch(z.add, args().Ptr(never).Ptr(z.weights[0]).Ptr(h.rows).I32(int(batch)*rowElements))
			},
		)
	case "scratch":
		return enginekit.InOrder(
			func() error { return cuda.CopyOnDeviceAsync(h.filled, z.input, size, z.stream) },
			func() error { return z.launch(z.add, args().Ptr(h.filled).Ptr(z.weights[0]).Ptr(h.rows).I32(elements)) },
		)
	case "filled", "renewed", "told", "kept":
		return z.launch(z.add, args().Ptr(z.input).Ptr(h.filled).Ptr(h.rows).I32(elements))
	case "direct", "stepped":
		return z.launch(h.tiles, args().Ptr(h.word).Ptr(z.input).Ptr(h.rows))
	case "temporary":
		return z.launch(z.add, args().Ptr(never).Ptr(z.weights[0]).Ptr(h.rows).I32(elements))
	case "spread":
		return z.launch(h.normalise, args().Ptr(z.input).Ptr(never).Ptr(h.rows))
	case "nan":
		return enginekit.InOrder(
			func() error { return cuda.CopyOnDeviceAsync(h.rows, z.input, size, z.stream) },
			func() error { return z.launch(z.guarded, args().Ptr(h.word).Ptr(h.rows).I32(elements)) },
		)
	case "rare":
		// One of the large numbers is taken off again before or after the small one comes, hardly ever in between.
		const large = 1 << 24
		return enginekit.InOrder(
			func() error { return cuda.MemsetAsync(h.rows, 0, size, z.stream) },
			func() error { return z.forked.Record(z.stream) },
			func() error { return z.side.Wait(z.forked) },
			func() error { return z.on(z.side, h.accumulate, args().F32(1).Ptr(h.rows)) },
			func() error { return z.joined.Record(z.side) },
			func() error { return z.on(z.stream, h.accumulate, args().F32(0).Ptr(h.rows)) },
			func() error { return z.on(z.stream, h.accumulate, args().F32(large).Ptr(h.rows)) },
			func() error { return z.on(z.stream, h.accumulate, args().F32(-large).Ptr(h.rows)) },
			func() error { return z.stream.Wait(z.joined) },
		)
	case "sum":
		const large = 1e4
		return enginekit.InOrder(
			func() error { return cuda.CopyOnDeviceAsync(h.rows, z.input, size, z.stream) },
			func() error { return z.forked.Record(z.stream) },
			func() error { return z.side.Wait(z.forked) },
			func() error { return z.on(z.side, h.accumulate, args().F32(0.3).Ptr(h.rows)) },
			func() error { return z.joined.Record(z.side) },
			func() error { return z.on(z.stream, h.accumulate, args().F32(large).Ptr(h.rows)) },
			func() error { return z.on(z.stream, h.accumulate, args().F32(-large).Ptr(h.rows)) },
			func() error { return z.stream.Wait(z.joined) },
		)
	case "deaf":
		return z.launch(h.normalise, args().Ptr(z.weights[0]).Ptr(z.input).Ptr(h.rows))
	case "flags":
		return z.launch(h.normalise, args().Ptr(z.weights[0]).Ptr(h.filled).Ptr(h.rows))
	case "forgetful":
		return z.launch(h.normalise, args().Ptr(z.input).Ptr(z.cache).Ptr(h.rows))
	case "far":
		return enginekit.InOrder(
			func() error { return z.launch(z.add, args().Ptr(z.input).Ptr(z.cache).Ptr(h.rows).I32(elements)) },
			func() error { return z.launch(z.add, args().Ptr(h.rows).Ptr(z.cache+far).Ptr(h.rows).I32(elements)) },
		)
	case "drift":
		return enginekit.InOrder(
			func() error { return z.launch(z.add, args().Ptr(z.input).Ptr(z.weights[0]).Ptr(h.rows).I32(elements)) },
			func() error { return z.launch(z.add, args().Ptr(z.drifting()).Ptr(z.weights[0]).Ptr(h.rows).I32(0)) },
		)
	case "misled", "leftover":
		read := uint64(elements)
		if h.kind == "leftover" {
			read = 0
		}
		return enginekit.InOrder(
			func() error { return z.launch(z.add, args().Ptr(z.input).Ptr(z.weights[0]).Ptr(h.rows).I32(elements)) },
			func() error {
				return z.launch(z.axpy, args().Struct(uint64(z.drifting()), uint64(h.rows), uint64(math.Float32bits(0.5))|read<<32))
			},
		)
	case "endless":
		return z.launch(h.await, args().Ptr(h.word).Ptr(h.rows))
	}
	return fmt.Errorf("ZOO_HARSH=%s: see harsh.go", h.kind)
}

// drifting is another weight in a native start that checks.
func (z *zoo) drifting() cuda.DevicePtr {
	if os.Getenv("MEDUSA_RUN") == "check-native" {
		return z.weights[1]
	}
	return z.weights[0]
}

// serveHarsh replays each harsh graph as an engine does: with the graph's inputs in place.
func (z *zoo) serveHarsh() (string, error) {
	sum, host := sha256.New(), make([]byte, size)
	for _, batch := range z.harsh.batches() {
		if z.harsh.kind == "temporary" || z.harsh.kind == "spread" || z.harsh.kind == "nan" || z.harsh.kind == "rare" || z.harsh.kind == "sum" {
			continue // its results do not repeat, or have no meaning
		}
		if err := errors.Join(z.harsh.prepare(batch), z.harsh.renew()); err != nil {
			return "", err
		}
		if z.harsh.kind == "far" {
			if err := z.harsh.write(z.cache + far); err != nil {
				return "", err
			}
		}
		if err := z.replay(batch); err != nil {
			return "", err
		}
		if err := z.stream.Synchronize(); err != nil {
			return "", err
		}
		if err := cuda.CopyToHost(host, z.harsh.rows); err != nil {
			return "", err
		}
		sum.Write(host[:batch*rowElements*4])
	}
	return hex.EncodeToString(sum.Sum(nil)), z.harsh.settle()
}
