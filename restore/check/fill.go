package check

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// Fills are functions of a seed alone, so that a native and a restored process fill alike. Every buffer has its own
// seed: with equal data everywhere, two swapped buffers would look right.

// random is the SplitMix64 generator: a full-period sequence of 64-bit words from any seed.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a value in [0, n), n > 0, by taking the upper half of a 128-bit product.
func (r *random) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// seedOf derives a buffer's seed from its name; purpose and round keep a buffer's fills apart.
func seedOf(purpose byte, alloc uint32, offset uint64, round int) random {
	// mutant: seed of a buffer
	r := random(uint64(purpose)<<56 ^ uint64(alloc)<<24 ^ uint64(round)<<16)
	// mutant: seed of a place in a buffer
	r = random(r.next() ^ offset)
	return random(r.next())
}

const (
	purposeTensor byte = 1 + iota
	purposeGarbage
	purposeHanded
)

// patternBytes is the period with which big floating-point buffers and garbage repeat. It is no multiple of any
// plausible page or layer stride, so that two places a stride apart still differ.
// mutant: period of a pattern
const patternBytes = 4<<20 + 4112

// garbage fills buf with random bytes that are finite numbers in every floating-point type. One NaN among the numbers that a kernel adds up
// would make all of its results equal, and hide every error.
func garbage(buf []byte, r random) {
	for len(buf) >= 8 {
		binary.LittleEndian.PutUint64(buf, finite(r.next()))
		buf = buf[8:]
	}
	for i := range buf {
		buf[i] = byte(finite(r.next()))
	}
}

// finite clears a bit of each byte that could hold the upper bits of an exponent of all ones. Such an exponent has five bits in half
// precision and in one type of eight bits, and more in any other type.
func finite(word uint64) uint64 {
	const ones = 0x7c7c7c7c7c7c7c7c
	// mutant: garbage is finite
	full := ^((word&ones ^ ones) + 0x7f7f7f7f7f7f7f7f) & 0x8080808080808080
	return word &^ (full >> 1)
}

// poisonAgain returns other garbage for the second replay. Every byte differs from the first replay's.
func poisonAgain(data []byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[i] = b ^ 1 // finite as well
	}
	return out
}

// tensorData returns the fill of a tensor: all of it, or one period of a pattern that repeats. Floats are uniform in [-1, 1) and exact in
// their type; integers are in [Lo, Hi), or the lowest of these, shuffled nearby, each once, if Distinct. An output's contents before a
// replay have no meaning, so it gets arbitrary bytes.
func tensorData(t *graphir.Tensor, r random) ([]byte, error) {
	data := make([]byte, min(t.Size, patternBytes))
	switch {
	case t.Role == graphir.RoleOutput:
		garbage(data, r)
	case t.DType.Float():
		fillFloats(data, t.DType, r)
	default:
		if varies(t) { // a sampler's counts may be gigabytes of zeros
			data = make([]byte, t.Size)
		}
		if err := fillIntegers(data, t, r); err != nil {
			return nil, fmt.Errorf("fill tensor %s: %w", t.Name, err)
		}
	}
	return data, nil
}

// handedData returns one period of the fill of an allocation in which graphs expect an earlier graph's results. Arbitrary bytes would hold
// NaNs and infinities. Results computed from them would look alike, even if a graph was wrong.
func handedData(dtype graphir.DType, alloc uint32) []byte {
	data := make([]byte, patternBytes)
	// mutant: numbers in memory that graphs hand on
	fillFloats(data, dtype, seedOf(purposeHanded, alloc, 0, 0))
	return data
}

func fillFloats(data []byte, dtype graphir.DType, r random) {
	switch dtype {
	case graphir.F32:
		for ; len(data) >= 4; data = data[4:] {
			v := float32(int64(r.next()>>40)-1<<23) / (1 << 23)
			binary.LittleEndian.PutUint32(data, math.Float32bits(v))
		}
	case graphir.F16:
		for ; len(data) >= 2; data = data[2:] {
			binary.LittleEndian.PutUint16(data, halfOf(int(r.next()>>53)-1024))
		}
	case graphir.BF16:
		for ; len(data) >= 2; data = data[2:] {
			v := float32(int(r.next()>>56)-128) / 128
			binary.LittleEndian.PutUint16(data, uint16(math.Float32bits(v)>>16))
		}
	}
}

// halfOf returns n/1024 in IEEE half precision, for -1024 <= n < 1024: eleven significant bits, so it is exact.
func halfOf(n int) uint16 {
	if n == 0 {
		return 0
	}
	var sign uint16
	if n < 0 {
		sign, n = 0x8000, -n
	}
	top := bits.Len(uint(n)) - 1 // n = 1.fraction * 2^top
	return sign | uint16(top-10+15)<<10 | uint16(n<<(10-top)&0x3ff)
}

// nearby is how far distinct values are shuffled.
const nearby = 64

func fillIntegers(data []byte, t *graphir.Tensor, r random) error {
	var width int
	switch t.DType {
	case graphir.I32:
		width = 4
	case graphir.I64:
		width = 8
	case graphir.U8:
		width = 1
	default:
		return fmt.Errorf("data type %d is unknown", t.DType)
	}
	// mutant: ranges that hold no value
	if t.Hi <= t.Lo {
		return fmt.Errorf("[%d, %d) holds no value", t.Lo, t.Hi)
	}
	span, count := uint64(t.Hi)-uint64(t.Lo), len(data)/width
	// mutant: distinct values that do not fit
	if t.Distinct && uint64(count) > span {
		return fmt.Errorf("%d distinct values do not fit into [%d, %d)", count, t.Lo, t.Hi)
	}
	if t.Distinct {
		// The lowest values that are enough, and the lowest of these first: memory that a small batch indexes is then checked without gaps, see graphir.CheckedKV.
		span = uint64(count)
	}
	moved := make(map[uint64]uint64) // of Fisher-Yates shuffles of nearby values
	for i := range count {
		v := r.below(span)
		if t.Distinct {
			// mutant: lowest values first
			last := min(span, uint64(i)/nearby*nearby+nearby)
			// mutant: each value once
			at := uint64(i) + r.below(last-uint64(i))
			v = lookup(moved, at)
			moved[at] = lookup(moved, uint64(i))
		}
		// mutant: lowest value
		v += uint64(t.Lo)
		switch width {
		case 1:
			data[i] = byte(v)
		case 4:
			binary.LittleEndian.PutUint32(data[4*i:], uint32(v))
		case 8:
			binary.LittleEndian.PutUint64(data[8*i:], v)
		}
	}
	return nil
}

func lookup(moved map[uint64]uint64, i uint64) uint64 {
	if v, ok := moved[i]; ok {
		return v
	}
	return i
}

// write copies data to a device address and repeats it until size bytes are filled.
func write(at uint64, size uint64, data []byte) error {
	if err := cuda.CopyToDevice(cuda.DevicePtr(at), data); err != nil {
		return err
	}
	return repeat(at, uint64(len(data)), size)
}

// repeat fills size bytes with copies of the first ones, doubling on the device.
func repeat(at, done, size uint64) error {
	for done < size {
		n := min(done, size-done)
		if err := cuda.CopyOnDeviceAsync(cuda.DevicePtr(at+done), cuda.DevicePtr(at), n, 0); err != nil {
			return err
		}
		done += n
	}
	return nil
}
