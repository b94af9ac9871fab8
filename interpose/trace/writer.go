package trace

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// chunkLimit is the size at which a chunk is written. A larger record has a chunk of its own.
const chunkLimit = 1 << 20

// Writer writes a trace as the C recorder does. It numbers the records itself and sets the order in their heads.
type Writer struct {
	w       io.Writer
	chunk   []byte
	records uint64
	err     error
}

// NewWriter starts a trace on w.
func NewWriter(w io.Writer) *Writer {
	t := &Writer{w: w}
	t.write(binary.LittleEndian.AppendUint32([]byte(magic), Version))
	return t
}

// Write appends rec. Errors of the underlying writer are kept for Flush and End.
func (t *Writer) Write(rec Record) {
	rec.Header().Order = t.records
	t.records++
	h := rec.Header()
	e := encoder{}
	e.u64(h.Order)
	e.u64(h.Time)
	e.u32(h.Thread)
	rec.encode(&e)
	if len(t.chunk) > 0 && len(t.chunk)+recordHead+len(e.b) > chunkLimit {
		t.flush()
	}
	t.chunk = binary.LittleEndian.AppendUint32(t.chunk, uint32(rec.RecordType()))
	t.chunk = binary.LittleEndian.AppendUint32(t.chunk, uint32(len(e.b)))
	t.chunk = append(t.chunk, e.b...)
}

// Flush writes the pending records as a chunk.
func (t *Writer) Flush() error {
	t.flush()
	if t.err != nil {
		return fmt.Errorf("write trace: %w", t.err)
	}
	return nil
}

// End writes the end record and flushes. Without it the trace reads as incomplete.
func (t *Writer) End() error {
	t.Write(&End{Records: t.records})
	return t.Flush()
}

func (t *Writer) flush() {
	if len(t.chunk) == 0 {
		return
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(t.chunk)))
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, t.chunk)
	t.write(binary.LittleEndian.AppendUint32(head, sum))
	t.write(t.chunk)
	t.chunk = t.chunk[:0]
}

func (t *Writer) write(b []byte) {
	if t.err == nil {
		_, t.err = t.w.Write(b)
	}
}
