package trace

import (
	"encoding/binary"
	"math"
)

// decoder reads the body of one record. The first read past its end sets short, and all later ones return zero.
type decoder struct {
	b      []byte
	at     int // in b; slicing b anew would cost a write barrier for each field
	short  bool
	lent   bool // a record refers to memory of b
	memory *Memory
}

// lendFrom is the size from which a field of bytes refers to the chunk that it came in. Smaller fields are copied, so that they
// do not hold the chunk.
const lendFrom = 4 << 10

func (d *decoder) start(b []byte) { d.b, d.at, d.short = b, 0, false }

func (d *decoder) left() int { return len(d.b) - d.at }

// end is the end of a record that is too short.
func (d *decoder) end() { d.short, d.at = true, len(d.b) }

func (d *decoder) take(n int) []byte {
	if n > d.left() {
		d.end()
		return nil
	}
	out := d.b[d.at : d.at+n : d.at+n]
	d.at += n
	return out
}

func (d *decoder) u8() uint8 {
	if d.left() < 1 {
		d.end()
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

func (d *decoder) u32() uint32 {
	if d.left() < 4 {
		d.end()
		return 0
	}
	d.at += 4
	return binary.LittleEndian.Uint32(d.b[d.at-4:])
}

func (d *decoder) u64() uint64 {
	if d.left() < 8 {
		d.end()
		return 0
	}
	d.at += 8
	return binary.LittleEndian.Uint64(d.b[d.at-8:])
}

func (d *decoder) i64() int64   { return int64(d.u64()) }
func (d *decoder) f64() float64 { return math.Float64frombits(d.u64()) }
func (d *decoder) str() string  { return string(d.take(d.count(1))) }

func (d *decoder) bytes() []byte {
	b := d.take(d.count(1))
	if len(b) < lendFrom {
		out := d.memory.bytes(len(b))
		copy(out, b)
		return out
	}
	d.lent = true
	return b
}

// u32s returns a list, nil if it is empty.
func (d *decoder) u32s() []uint32 {
	n := d.count(4)
	if n == 0 {
		return nil
	}
	out := d.memory.numbers(n)
	for i := range out {
		out[i] = d.u32()
	}
	return out
}

// count reads the length of a list whose items take at least size bytes each. It refuses a length beyond the remaining bytes,
// before memory is allocated.
func (d *decoder) count(size int) int {
	n := d.u32()
	if uint64(n)*uint64(size) > uint64(d.left()) {
		d.end()
		return 0
	}
	return int(n)
}
