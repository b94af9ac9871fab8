package trace

import (
	"encoding/binary"
	"math"
)

// decoder reads the body of one record. The first read past its end sets short, and all later ones return zero.
// Byte fields alias the buffer.
type decoder struct {
	b     []byte
	short bool
}

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.short, d.b = true, nil
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) u8() uint8 {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) i64() int64    { return int64(d.u64()) }
func (d *decoder) f64() float64  { return math.Float64frombits(d.u64()) }
func (d *decoder) str() string   { return string(d.bytes()) }
func (d *decoder) bytes() []byte { return d.take(d.count(1)) }

// count reads the length of a list whose items take at least size bytes each. It refuses a length beyond the remaining bytes,
// before memory is allocated.
func (d *decoder) count(size int) int {
	n := d.u32()
	if uint64(n)*uint64(size) > uint64(len(d.b)) {
		d.short, d.b = true, nil
		return 0
	}
	return int(n)
}

// encoder appends the body of one record.
type encoder struct{ b []byte }

func (e *encoder) u8(v uint8)    { e.b = append(e.b, v) }
func (e *encoder) u32(v uint32)  { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64)  { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *encoder) i64(v int64)   { e.u64(uint64(v)) }
func (e *encoder) f64(v float64) { e.u64(math.Float64bits(v)) }
func (e *encoder) str(v string)  { e.count(len(v)); e.b = append(e.b, v...) }
func (e *encoder) bytes(v []byte) {
	e.count(len(v))
	e.b = append(e.b, v...)
}
func (e *encoder) count(n int) { e.u32(uint32(n)) }
