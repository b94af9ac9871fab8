package check

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"medusa/graphir"
)

func TestFillIsDeterministicAndDistinct(t *testing.T) {
	for _, dtype := range []graphir.DType{graphir.F32, graphir.F16, graphir.BF16, graphir.I32, graphir.I64, graphir.U8} {
		tensor := &graphir.Tensor{Name: "t", DType: dtype, Size: 1 << 12, Hi: 100}
		fill := func(alloc uint32, offset uint64) []byte {
			data, err := tensorData(tensor, seedOf(purposeTensor, alloc, offset, 0))
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		first := fill(1, 0)
		if len(first) != 1<<12 {
			t.Errorf("type %d: %d bytes filled of %d", dtype, len(first), 1<<12)
		}
		if !bytes.Equal(first, fill(1, 0)) {
			t.Errorf("type %d: two fills of one buffer differ", dtype)
		}
		if bytes.Equal(first, fill(2, 0)) || bytes.Equal(first, fill(1, 256)) {
			t.Errorf("type %d: two buffers are filled alike", dtype)
		}
	}
}

func TestGarbageDiffersBetweenRounds(t *testing.T) {
	a, b := make([]byte, 1003), make([]byte, 1003)
	garbage(a, seedOf(purposeGarbage, 1, 0, 0))
	garbage(b, seedOf(purposeGarbage, 1, 0, 1))
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	if same > len(a)/20 {
		t.Errorf("%d of %d bytes are equal in both rounds", same, len(a))
	}
	if bytes.Equal(a[1000:], make([]byte, 3)) {
		t.Error("the tail is not filled")
	}
}

// Pages, rows and layers lie powers of two apart: places at such a distance must not be filled alike.
func TestPatternIsNoStride(t *testing.T) {
	for stride := uint64(512); stride <= 1<<40; stride *= 2 {
		if stride%patternBytes == 0 {
			t.Errorf("a pattern of %d bytes repeats every %d", patternBytes, stride)
		}
	}
}

func TestFloatsAreInRange(t *testing.T) {
	for dtype, read := range map[graphir.DType]func([]byte) []float64{
		graphir.F32: func(b []byte) (out []float64) {
			for ; len(b) > 0; b = b[4:] {
				out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
			}
			return out
		},
		graphir.BF16: func(b []byte) (out []float64) {
			for ; len(b) > 0; b = b[2:] {
				out = append(out, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b))<<16)))
			}
			return out
		},
		graphir.F16: func(b []byte) (out []float64) {
			for ; len(b) > 0; b = b[2:] {
				out = append(out, fromHalf(binary.LittleEndian.Uint16(b)))
			}
			return out
		},
	} {
		data := make([]byte, 1<<16)
		fillFloats(data, dtype, 1)
		var sum, low, high float64
		values := read(data)
		for _, v := range values {
			if !(v >= -1 && v < 1) {
				t.Fatalf("type %d: %v is outside [-1, 1)", dtype, v)
			}
			sum, low, high = sum+v, min(low, v), max(high, v)
		}
		if mean := sum / float64(len(values)); math.Abs(mean) > 0.05 || low > -0.9 || high < 0.9 {
			t.Errorf("type %d: mean %v, from %v to %v: not uniform in [-1, 1)", dtype, mean, low, high)
		}
	}
}

// fromHalf decodes a normal IEEE half, or zero.
func fromHalf(h uint16) float64 {
	if h&0x7fff == 0 {
		return 0
	}
	v := math.Ldexp(1+float64(h&0x3ff)/1024, int(h>>10&0x1f)-15)
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

func TestHalfIsExact(t *testing.T) {
	for n := -1024; n < 1024; n++ {
		if got, want := fromHalf(halfOf(n)), float64(n)/1024; got != want {
			t.Fatalf("halfOf(%d) is %v, want %v", n, got, want)
		}
	}
}

func TestIntegersAreInRange(t *testing.T) {
	tensor := &graphir.Tensor{DType: graphir.I32, Size: 4 * 1000, Lo: -3, Hi: 5}
	data, err := tensorData(tensor, 9)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int32]int{}
	for ; len(data) > 0; data = data[4:] {
		seen[int32(binary.LittleEndian.Uint32(data))]++
	}
	for v := int32(-3); v < 5; v++ {
		if seen[v] == 0 {
			t.Errorf("%d never occurs", v)
		}
		delete(seen, v)
	}
	if len(seen) != 0 {
		t.Errorf("outside [-3, 5): %v", seen)
	}
}

// An input of one value is filled by one period of it, which is whole elements long.
func TestOneValue(t *testing.T) {
	data, err := tensorData(&graphir.Tensor{DType: graphir.I64, Size: 1 << 30, Lo: 7, Hi: 8}, 9)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != patternBytes || len(data)%8 != 0 {
		t.Fatalf("%d bytes", len(data))
	}
	for i := 0; i < len(data); i += 8 {
		if v := binary.LittleEndian.Uint64(data[i:]); v != 7 {
			t.Fatalf("element %d is %d", i/8, v)
		}
	}
}

func TestDistinctIntegers(t *testing.T) {
	for _, hi := range []int64{1000, 1 << 40} { // of a large range, the lowest are taken
		tensor := &graphir.Tensor{DType: graphir.I64, Size: 8 * 1000, Hi: hi, Distinct: true}
		data, err := tensorData(tensor, 4)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint64]bool{}
		ascending := 0
		last := uint64(0)
		for ; len(data) > 0; data = data[8:] {
			v := binary.LittleEndian.Uint64(data)
			if v >= 1000 || seen[v] {
				t.Fatalf("%d is outside [0, 1000) or occurs twice", v)
			}
			if at := uint64(len(seen)); v/64 != at/64 {
				t.Fatalf("value %d is %d: a batch of 64 would use more than the lowest 64", at, v)
			}
			if v > last {
				ascending++
			}
			seen[v], last = true, v
		}
		if ascending < 400 || ascending > 600 {
			t.Errorf("%d of 1000 values follow a smaller one: not shuffled", ascending)
		}
	}
}

func TestFillRefuses(t *testing.T) {
	for want, tensor := range map[string]*graphir.Tensor{
		"holds no value":          {Name: "x", DType: graphir.I32, Size: 4},
		"2 distinct values":       {Name: "x", DType: graphir.I32, Size: 8, Hi: 1, Distinct: true},
		"data type 77 is unknown": {Name: "x", DType: 77, Size: 8, Hi: 1},
	} {
		if _, err := tensorData(tensor, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Garbage is a finite number in every type that a kernel may read it as, at every byte.
func TestGarbageIsFinite(t *testing.T) {
	data := make([]byte, 1<<20+5)
	garbage(data, seedOf(purposeGarbage, 1, 0, 0))
	for name, data := range map[string][]byte{"garbage": data, "the second poison": poisonAgain(data)} {
		for i := range data[:len(data)-8] {
			if half := binary.LittleEndian.Uint16(data[i:]); half>>10&0x1f == 0x1f {
				t.Fatalf("%s: byte %d begins the half %#x", name, i, half)
			}
			if word := binary.LittleEndian.Uint32(data[i:]); word>>23&0xff == 0xff {
				t.Fatalf("%s: byte %d begins the float %#x", name, i, word)
			}
			if word := binary.LittleEndian.Uint64(data[i:]); word>>52&0x7ff == 0x7ff {
				t.Fatalf("%s: byte %d begins the double %#x", name, i, word)
			}
			if b := data[i]; b&0x7f == 0x7f || b>>2&0x1f == 0x1f {
				t.Fatalf("%s: byte %d is %#x", name, i, b)
			}
		}
	}
	values := map[byte]bool{}
	for _, b := range data {
		values[b] = true
	}
	if len(values) != 256-8 {
		t.Errorf("%d values of a byte, want all but 8", len(values))
	}
}
