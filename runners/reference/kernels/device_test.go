package kernels_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"testing"

	"medusa/internal/cuda"
	"medusa/runners/reference/kernels"
	"medusa/test/enginekit"
	"medusa/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// A device runs kernels of one storage type and takes and gives their data as float64.
type device struct {
	t       *testing.T
	storage kernels.Storage
	modules map[string]cuda.Module
	context cuda.Context
}

// onDevice runs the test for every storage type.
func onDevice(t *testing.T, run func(*testing.T, *device)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, context, err := enginekit.Open()
	must(t, err)
	loaded := map[string]cuda.Module{}
	for _, m := range kernels.Modules() {
		loaded[m.Name], err = cuda.ModuleLoadData(m.PTX)
		must(t, err)
	}
	d := &device{t: t, modules: loaded, context: context}
	for storage, name := range []string{kernels.F32: "F32", kernels.F16: "F16", kernels.BF16: "BF16"} {
		d.storage = kernels.Storage(storage)
		d.sub(name, run)
	}
}

// sub runs a subtest, which has a thread of its own, with the context bound to that thread.
func (d *device) sub(name string, run func(*testing.T, *device)) {
	d.t.Run(name, func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		must(t, d.context.SetCurrent())
		own := *d
		own.t = t
		run(t, &own)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *device) launch(k kernels.Kernel, grid cuda.Dim3, threads uint32, args *cuda.Args) {
	d.t.Helper()
	module, name := kernels.Name(k, d.storage)
	f, err := d.modules[module].Function(name)
	must(d.t, err)
	must(d.t, f.Launch(grid, cuda.Dim3{threads, 1, 1}, 0, 0, args))
	must(d.t, cuda.Synchronize())
}

func (d *device) bytes(data []byte) cuda.DevicePtr {
	d.t.Helper()
	p, err := cuda.MemAlloc(uint64(len(data)))
	must(d.t, err)
	d.t.Cleanup(func() { p.Free() })
	must(d.t, cuda.CopyToDevice(p, data))
	return p
}

func encode(data any) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, data)
	return b.Bytes()
}

func (d *device) ints(v ...int32) cuda.DevicePtr      { return d.bytes(encode(v)) }
func (d *device) float32s(v []float32) cuda.DevicePtr { return d.bytes(encode(v)) }
func (d *device) elements(v []float64) cuda.DevicePtr { return d.bytes(d.stored(v)) }
func (d *device) blank(n int) cuda.DevicePtr          { return d.elements(make([]float64, n)) }
func (d *device) size() int {
	return map[kernels.Storage]int{kernels.F32: 4, kernels.F16: 2, kernels.BF16: 2}[d.storage]
}
func (d *device) rounded(v []float64) []float64          { return d.loaded(d.stored(v)) }
func (d *device) read(p cuda.DevicePtr, n int) []float64 { return d.loaded(d.raw(p, n*d.size())) }

func (d *device) readInts(p cuda.DevicePtr, n int) []int32 {
	out := make([]int32, n)
	binary.Read(bytes.NewReader(d.raw(p, 4*n)), binary.LittleEndian, out)
	return out
}

func (d *device) raw(p cuda.DevicePtr, n int) []byte {
	d.t.Helper()
	out := make([]byte, n)
	must(d.t, cuda.CopyToHost(out, p))
	return out
}

func (d *device) stored(v []float64) []byte {
	if d.storage == kernels.F32 {
		out := make([]float32, len(v))
		for i := range v {
			out[i] = float32(v[i])
		}
		return encode(out)
	}
	encode16 := map[kernels.Storage]func(float64) uint16{kernels.F16: toHalf, kernels.BF16: toBFloat}[d.storage]
	out := make([]uint16, len(v))
	for i := range v {
		out[i] = encode16(v[i])
	}
	return encode(out)
}

func (d *device) loaded(raw []byte) []float64 {
	out := make([]float64, len(raw)/d.size())
	for i := range out {
		switch d.storage {
		case kernels.F32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		case kernels.F16:
			out[i] = fromHalf(binary.LittleEndian.Uint16(raw[2*i:]))
		case kernels.BF16:
			out[i] = fromBFloat(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}
	return out
}

// toHalf rounds to the nearest binary16 number, ties to even.
func toHalf(v float64) uint16 {
	sign := uint16(math.Float64bits(v) >> 48 & 0x8000)
	v = math.Abs(v)
	switch {
	case math.IsNaN(v):
		return 0x7e00
	case v >= 65520:
		return sign | 0x7c00
	case v == 0:
		return sign
	}
	_, exponent := math.Frexp(v)
	exponent = max(exponent-1, -14)
	steps := uint16(math.RoundToEven(math.Ldexp(v, 10-exponent))) // 1024 and more for normal numbers
	return sign | (uint16(exponent+14)<<10 + steps)
}

// toBFloat rounds to the nearest bfloat16 number, ties to even.
func toBFloat(v float64) uint16 {
	switch {
	case math.IsNaN(v):
		return 0x7fc0
	case math.IsInf(v, 0):
		return uint16(math.Float32bits(float32(v)) >> 16)
	}
	// The float32 towards zero, of which every bfloat16 number is a prefix.
	f := float32(v)
	if math.Abs(float64(f)) > math.Abs(v) {
		f = math.Nextafter32(f, 0)
	}
	down := uint16(math.Float32bits(f) >> 16)
	below, above := math.Abs(v-fromBFloat(down)), math.Abs(fromBFloat(down+1)-v)
	if below < above || (below == above && down%2 == 0) {
		return down
	}
	return down + 1
}

func fromBFloat(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }

func fromHalf(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exponent, fraction := int(h>>10&31), float64(h&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

func TestBFloat(t *testing.T) {
	for b := range 0x10000 {
		if v := fromBFloat(uint16(b)); !math.IsNaN(v) && toBFloat(v) != uint16(b) {
			t.Fatalf("bfloat16 %#04x is %g, which encodes to %#04x", b, v, toBFloat(v))
		}
	}
}

func TestHalf(t *testing.T) {
	for h := range 0x10000 {
		if v := fromHalf(uint16(h)); !math.IsNaN(v) && toHalf(v) != uint16(h) {
			t.Fatalf("half %#04x is %g, which encodes to %#04x", h, v, toHalf(v))
		}
	}
}

// close checks got against want, with a tolerance relative to the largest magnitude: the storage type's rounding, and
// for float a few roundings on the way.
func (d *device) close(what string, got, want []float64) {
	d.t.Helper()
	largest := 0.0
	for _, v := range want {
		largest = math.Max(largest, math.Abs(v))
	}
	tolerance := largest * map[kernels.Storage]float64{kernels.F32: 2e-6, kernels.F16: 1e-3, kernels.BF16: 8e-3}[d.storage]
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			d.t.Errorf("%s: element %d is %g, want %g", what, i, got[i], want[i])
			return
		}
	}
}

func (d *device) same(what string, got, want []float64) {
	d.t.Helper()
	if !slices.Equal(got, want) {
		d.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// noise gives n values in [-1, 1) that every storage type holds exactly.
func noise(n int, seed uint32) []float64 {
	out := make([]float64, n)
	for i := range out {
		seed = seed*1664525 + 1013904223
		out[i] = float64(int32(seed)>>24) / 128
	}
	return out
}
