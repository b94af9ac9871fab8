package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// Version is the version of traces that this package reads.
const Version = 1

const (
	magic      = "medusaTR"
	headerSize = len(magic) + 4
	chunkHead  = 4 + 4 // length, CRC-32C
	recordHead = 4 + 4 // type, length
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Reader returns the records of one trace in order.
type Reader struct {
	name   string
	r      io.Reader
	closer io.Closer
	size   int64 // of the whole file
	off    int64 // of the next chunk

	room       *[]byte // memory of the current chunk
	chunk      []byte  // rest of it
	chunkNo    int     // chunks read so far
	chunkStart int64
	chunkSize  int
	records    uint64
	ended      bool
	err        error
	want       func(Type) bool // nil: all
	decoder    decoder
}

// Open opens the trace at path and reads its header.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open trace: %w", err)
	}
	r, err := NewReader(path, bufio.NewReader(f), st.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closer = f
	return r, nil
}

// Is reports whether the file at path begins like a trace.
func Is(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == magic
}

// NewReader reads a trace of size bytes from r. name is its name in errors.
func NewReader(name string, r io.Reader, size int64) (*Reader, error) {
	t := &Reader{name: name, r: r, size: size}
	head := make([]byte, headerSize)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, t.fail("header", 0, err)
	}
	m := min(n, len(magic))
	switch {
	case string(head[:m]) != magic[:m]:
		return nil, t.fail("header", 0, fmt.Errorf("%w: the file does not begin with %q", errForeign, magic))
	case n < headerSize:
		return nil, t.fail("header", 0, fmt.Errorf("%w: %d bytes of %d", ErrIncomplete, n, headerSize))
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != Version {
		return nil, t.fail("header", int64(len(magic)), fmt.Errorf("%w: version %d (this reader knows %d)", errVersion, v, Version))
	}
	t.off = int64(headerSize)
	return t, nil
}

// Close closes the file. Records that were read stay valid.
func (t *Reader) Close() error {
	if t.room != nil && !t.decoder.lent {
		rooms.Put(t.room)
	}
	t.room, t.chunk = nil, nil
	if t.closer == nil {
		return nil
	}
	return t.closer.Close()
}

// Next returns the next record. After the end record it returns io.EOF; any other error is an [*Error] and repeats.
func (t *Reader) Next() (Record, error) {
	if t.err != nil {
		return nil, t.err
	}
	for {
		rec, err := t.next()
		if err != nil {
			t.err = err
			return nil, err
		}
		t.records++
		if rec != nil {
			_, t.ended = rec.(*End)
			return rec, nil
		}
	}
}

// Only skips records of other types, except the first and the last of the trace. Their framing and order are checked, but their
// fields are not.
func (t *Reader) Only(want func(Type) bool) { t.want = want }

// Into puts the records that follow into memory that the caller resets once it has no more use for them; nil: into new memory.
func (t *Reader) Into(m *Memory) { t.decoder.memory = m }

func (t *Reader) next() (Record, error) {
	if len(t.chunk) == 0 {
		if err := t.readChunk(); err != nil {
			return nil, err
		}
	}
	at, typ := t.chunkStart+int64(t.chunkSize-len(t.chunk)), Type(0)
	if t.ended {
		return nil, t.corrupt(at, typ, "a record follows the end record")
	}
	d := &t.decoder
	if len(t.chunk) < recordHead {
		return nil, t.corrupt(at, typ, "it reaches past its chunk")
	}
	number, length := Type(binary.LittleEndian.Uint32(t.chunk)), binary.LittleEndian.Uint32(t.chunk[4:])
	if int64(length) > int64(len(t.chunk)-recordHead) {
		return nil, t.corrupt(at, typ, "it reaches past its chunk")
	}
	d.start(t.chunk[recordHead:][:length])
	t.chunk = t.chunk[recordHead+length:]
	if t.want != nil && t.records > 0 && number != TypeEnd && !t.want(number) {
		if order := d.u64(); d.short || order != t.records {
			return nil, t.corrupt(at, typ, "its order is %d", order)
		}
		return nil, nil
	}
	rec := t.record(number)
	if rec == nil {
		return nil, t.fail(t.section(typ), at, fmt.Errorf("%w: record type %d (needs a newer medusa)", errVersion, uint32(number)))
	}
	typ = number
	*rec.Header() = Head{Order: d.u64(), Time: d.u64(), Thread: d.u32()}
	rec.decode(d)
	switch {
	case d.short:
		return nil, t.corrupt(at, typ, "a field reaches past the record's %d bytes", length)
	case rec.Header().Order != t.records:
		return nil, t.corrupt(at, typ, "its order is %d", rec.Header().Order)
	case (t.records == 0) != (typ == TypeProcess):
		return nil, t.corrupt(at, typ, "a trace begins with its one process record")
	}
	if end, ok := rec.(*End); ok && end.Records != t.records {
		return nil, t.corrupt(at, typ, "the end record counts %d records, found %d", end.Records, t.records)
	}
	return rec, nil
}

// record returns an empty record, as newRecord does. Most of a trace are kernel nodes and edges.
func (t *Reader) record(number Type) Record {
	switch number {
	case TypeKernel:
		return t.decoder.memory.kernel()
	case TypeEdge:
		return t.decoder.memory.edge()
	}
	return newRecord(number)
}

// section names the current record in errors. Its type is 0 until it is known.
func (t *Reader) section(typ Type) string {
	text := fmt.Sprintf("chunk %d, record %d", t.chunkNo-1, t.records)
	if typ != 0 {
		text += fmt.Sprintf(" (%s)", typ)
	}
	return text
}

func (t *Reader) corrupt(at int64, typ Type, format string, args ...any) error {
	return t.fail(t.section(typ), at, fmt.Errorf("%w: %s", errCorrupt, fmt.Sprintf(format, args...)))
}

// readChunk reads and checks the next chunk. It refuses a size beyond the end of the file before it allocates memory.
func (t *Reader) readChunk() error {
	section := fmt.Sprintf("chunk %d", t.chunkNo)
	left := t.size - t.off
	if left == 0 && t.ended {
		return io.EOF
	}
	incomplete := func(format string, args ...any) error {
		return t.fail(section, t.off, fmt.Errorf("%w: %s", ErrIncomplete, fmt.Sprintf(format, args...)))
	}
	switch {
	case t.ended:
		return t.fail(section, t.off, fmt.Errorf("%w: %d bytes follow the end record", errCorrupt, left))
	case left == 0:
		return incomplete("no end record after %d records", t.records)
	case left < chunkHead:
		return incomplete("%d bytes of its head", left)
	}
	var head [chunkHead]byte
	if _, err := io.ReadFull(t.r, head[:]); err != nil {
		return t.readError(section, err)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if int64(length) > left-chunkHead {
		return incomplete("%d bytes of %d", left-chunkHead, length)
	}
	if length == 0 {
		return t.fail(section, t.off, fmt.Errorf("%w: the chunk is empty", errCorrupt))
	}
	b := t.buffer(int(length))
	if _, err := io.ReadFull(t.r, b); err != nil {
		return t.readError(section, err)
	}
	sum := crc32.Update(crc32.Checksum(head[:4], castagnoli), castagnoli, b)
	if want := binary.LittleEndian.Uint32(head[4:]); sum != want {
		return t.fail(section, t.off, fmt.Errorf("%w: checksum %08x, want %08x", errCorrupt, sum, want))
	}
	t.chunk, t.chunkSize, t.chunkStart = b, len(b), t.off+chunkHead
	t.off += chunkHead + int64(length)
	t.chunkNo++
	return nil
}

// rooms are memory for chunks that no reader uses.
var rooms sync.Pool

// usualChunk is the size at which the recorder writes a chunk. A larger record has a chunk of its own.
const usualChunk = 1 << 20

// buffer returns memory for a chunk: that of the one before, if no record refers to it.
func (t *Reader) buffer(length int) []byte {
	// mutant: chunks that records refer to
	if t.decoder.lent {
		t.room = nil
	}
	if t.room == nil {
		t.room, _ = rooms.Get().(*[]byte)
	}
	if t.room == nil || length > len(*t.room) {
		room := make([]byte, max(length, min(usualChunk, int(t.size))))
		t.room = &room
	}
	t.decoder.lent = false
	return (*t.room)[:length]
}

// readError maps a file that shrank while it was read to ErrIncomplete.
func (t *Reader) readError(section string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: the file ended early", ErrIncomplete)
	}
	return t.fail(section, t.off, err)
}

func (t *Reader) fail(section string, off int64, err error) error {
	return &Error{File: t.name, Section: section, Offset: off, Err: err}
}

// ReadAll returns all records of the trace at path. With an error it also returns the records before the bad place, which a
// process that died has left.
func ReadAll(path string) ([]Record, error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.all()
}

func (t *Reader) all() ([]Record, error) {
	var out []Record
	for {
		rec, err := t.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, rec)
	}
}
