// Package tracewriter writes traces as the interposer's recorder does.
//
// In: records of package trace, or structs with further fields. Out: a trace (interpose/trace/README.md). Fails: as writing does. It takes the
// bytes from the structs by reflection and does not know package trace, whose tests use it.
package tracewriter

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"reflect"
)

const (
	magic      = "medusaTR"
	version    = 1
	recordHead = 4 + 4 // type, length
	endType    = 28
	// chunkLimit is the size at which a chunk is written. A larger record has a chunk of its own.
	chunkLimit = 1 << 20
)

// Writer writes a trace. It numbers the records itself and sets the order in their heads.
type Writer struct {
	w       io.Writer
	chunk   []byte
	records uint64
	err     error
}

// New starts a trace on w.
func New(w io.Writer) *Writer {
	t := &Writer{w: w}
	t.write(binary.LittleEndian.AppendUint32([]byte(magic), version))
	return t
}

// Write appends rec, a pointer to a record. Errors of the underlying writer are kept for Flush and End.
func (t *Writer) Write(rec any) {
	v := reflect.ValueOf(rec)
	head := v.Elem().FieldByName("Head")
	head.FieldByName("Order").SetUint(t.records)
	t.append(uint32(v.MethodByName("RecordType").Call(nil)[0].Uint()), put(put(nil, head), v.Elem()))
}

func (t *Writer) append(kind uint32, body []byte) {
	t.records++
	if len(t.chunk) > 0 && len(t.chunk)+recordHead+len(body) > chunkLimit {
		t.flush()
	}
	t.chunk = binary.LittleEndian.AppendUint32(t.chunk, kind)
	t.chunk = binary.LittleEndian.AppendUint32(t.chunk, uint32(len(body)))
	t.chunk = append(t.chunk, body...)
}

// put appends the bytes of a value. A record's head is no part of its fields.
func put(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Uint8:
		return append(b, byte(v.Uint()))
	case reflect.Uint32:
		return binary.LittleEndian.AppendUint32(b, uint32(v.Uint()))
	case reflect.Uint64:
		return binary.LittleEndian.AppendUint64(b, v.Uint())
	case reflect.Int64:
		return binary.LittleEndian.AppendUint64(b, uint64(v.Int()))
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case reflect.String:
		return append(binary.LittleEndian.AppendUint32(b, uint32(v.Len())), v.String()...)
	case reflect.Slice:
		b = binary.LittleEndian.AppendUint32(b, uint32(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(b, v.Bytes()...)
		}
		for i := range v.Len() {
			b = put(b, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Head" {
				b = put(b, v.Field(i))
			}
		}
	default:
		panic("a record has a field of type " + v.Type().String())
	}
	return b
}

// Flush writes the pending records as a chunk.
func (t *Writer) Flush() error {
	t.flush()
	if t.err != nil {
		return fmt.Errorf("write trace: %w", t.err)
	}
	return nil
}

// Chunk writes any bytes as a chunk.
func (t *Writer) Chunk(payload []byte) error {
	t.chunk = append(t.chunk, payload...)
	return t.Flush()
}

// End writes the end record and flushes. Without it the trace reads as incomplete.
func (t *Writer) End() error {
	body := binary.LittleEndian.AppendUint64(nil, t.records) // order, time, thread, records
	body = append(body, make([]byte, 8+4)...)
	t.append(endType, binary.LittleEndian.AppendUint64(body, t.records))
	return t.Flush()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
