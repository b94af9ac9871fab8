package engine

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"medusa/runners/reference/config"
	"medusa/runners/reference/kernels"
)

func TestDefaultBatchSizes(t *testing.T) {
	sizes := defaultBatchSizes()
	if len(sizes) != 35 || sizes[3] != 8 || sizes[34] != 256 {
		t.Errorf("got %d sizes %v, want vLLM's 35", len(sizes), sizes)
	}
}

func TestOptions(t *testing.T) {
	c := &config.Config{MaxPositions: 100}
	o, err := Options{BatchSizes: []int{8, 1}}.complete(c)
	if err != nil || o.maxBatch() != 8 || o.MaxModelLen != 100 || o.maxBlocks() != 7 || o.MaxBatchedTokens != 100 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, row := range []struct {
		name string
		o    Options
		want string
	}{
		{"twice the same size", Options{BatchSizes: []int{2, 2}}, "batch sizes"},
		{"no sequence", Options{BatchSizes: []int{0}}, "batch sizes"},
		{"longer than the model", Options{MaxModelLen: 101}, "maximum length"},
		{"prefill shorter than a sequence", Options{MaxBatchedTokens: 99}, "prefill"},
		{"utilization", Options{Utilization: 1.5}, "utilization"},
		{"page size", Options{PageSize: -1}, "page size"},
		{"start", Options{Start: "warm"}, "start"},
	} {
		if _, err := row.o.complete(c); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want an error about %q", row.name, err, row.want)
		}
	}
}

func TestHalf(t *testing.T) {
	for _, row := range []struct {
		bits uint16
		want float64
	}{{0x3c00, 1}, {0xc000, -2}, {0x0001, 0x1p-24}, {0x83ff, -1023 * 0x1p-24}, {0x7bff, 65504}, {0xfc00, math.Inf(-1)}, {0x0400, 0x1p-14}} {
		if got := floats([]byte{byte(row.bits), byte(row.bits >> 8)}, kernels.F16)[0]; float64(got) != row.want {
			t.Errorf("%#04x is %v, want %v", row.bits, got, row.want)
		}
	}
	if !math.IsNaN(float64(half(0x7e00))) {
		t.Error("0x7e00 is a number")
	}
}

// An element that is no number is found wherever it lies, and no finite one is taken for it.
func TestNotFinite(t *testing.T) {
	encode := func(s kernels.Storage, v float32) []byte {
		bits := math.Float32bits(v)
		switch s {
		case kernels.F16:
			half := map[float32]uint16{65504: 0x7bff, -65504: 0xfbff, 0: 0x8000}
			if h, ok := half[v]; ok {
				return binary.LittleEndian.AppendUint16(nil, h)
			}
			return binary.LittleEndian.AppendUint16(nil, uint16(bits>>16)&0x8000|0x7c00|uint16(bits>>13)&0x3ff)
		case kernels.BF16:
			return binary.LittleEndian.AppendUint16(nil, uint16(bits>>16))
		}
		return binary.LittleEndian.AppendUint32(nil, bits)
	}
	largest := map[kernels.Storage]float32{kernels.F32: math.MaxFloat32, kernels.F16: 65504, kernels.BF16: math.Float32frombits(0x7f7f0000)}
	for s, most := range largest {
		for _, n := range []int{1, 2, 3, 7, 31, 32, 33, 70} {
			for at := -1; at < n; at++ {
				for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
					var raw []byte
					for i := range n {
						v := []float32{most, -most, 0}[i%3]
						if i == at {
							v = bad
						}
						raw = append(raw, encode(s, v)...)
					}
					if got := notFinite(raw, s); got != at {
						t.Fatalf("storage %d: element %d of %d is %v, found at %d", s, at, n, bad, got)
					}
				}
			}
		}
	}
}

// Other weights differ in every element by at most a quarter, and are numbers.
func TestChange(t *testing.T) {
	for s, largest := range map[kernels.Storage][]byte{kernels.F32: {0xff, 0xff, 0x7f, 0x7f}, kernels.F16: {0xff, 0x7b}, kernels.BF16: {0x7f, 0x7f}} {
		raw := make([]byte, 0, 1<<12)
		for i := range 1 << 10 {
			element := append([]byte(nil), largest...)
			if i%2 == 1 {
				element[len(element)-1] = 0x80 | byte(i%0x30) // negative, and smaller
			}
			raw = append(raw, element...)
		}
		before := floats(raw, s)
		change(raw, s)
		for i, now := range floats(raw, s) {
			was, ratio := float64(before[i]), float64(now)/float64(before[i])
			if was == float64(now) || math.IsInf(float64(now), 0) || math.IsNaN(float64(now)) || math.Abs(was) > 1e-4 && (ratio < 0.74 || ratio > 1.26) {
				t.Fatalf("storage %d: element %d was %v and is %v", s, i, was, now)
			}
		}
	}
}

func BenchmarkNotFinite(b *testing.B) {
	raw := make([]byte, chunk)
	b.SetBytes(chunk)
	for b.Loop() {
		if notFinite(raw, kernels.BF16) >= 0 {
			b.Fatal("zero is no number")
		}
	}
}

// Blocks are handed out once, the null block never, and come back.
func TestBlocks(t *testing.T) {
	c := &kvCache{blocks: 4, free: []int32{3, 2, 1}}
	seen := map[int32]bool{}
	for range 3 {
		id, err := c.take()
		if err != nil || id == nullBlock || seen[id] {
			t.Fatalf("took %d (%v) of %v", id, err, seen)
		}
		seen[id] = true
	}
	if _, err := c.take(); err == nil {
		t.Error("a fourth block was found in a cache of three")
	}
	c.give([]int32{2})
	if id, err := c.take(); err != nil || id != 2 {
		t.Errorf("took %d, %v; want the block that came back", id, err)
	}
}
