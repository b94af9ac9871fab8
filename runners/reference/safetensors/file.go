package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"medusa/runners/reference/plainjson"
)

// DType is an element type as a safetensors header spells it.
type DType string

// The element types that the engine computes with.
const (
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
)

// sizes are the bytes of one element.
var sizes = map[DType]uint64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, F16: 2, BF16: 2,
	"I32": 4, "U32": 4, F32: 4, "F64": 8, "I64": 8, "U64": 8,
}

// maxHeader bounds the bytes that are read on a file's own word. The format's reference implementation has the same bound.
const maxHeader = 100 << 20

// FormatError is a place at which a file breaks the format. Offset counts bytes from the start of the file.
type FormatError struct {
	File, Section string
	Offset        uint64
	Reason        string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("read %s: %s at byte %d: %s", e.File, e.Section, e.Offset, e.Reason)
}

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64
	file  *file
	begin uint64 // from the start of the file
	size  uint64
}

// File is the path of the file that holds the tensor.
func (t *Tensor) File() string { return t.file.Name() }

// Size is the length of the tensor's data in bytes.
func (t *Tensor) Size() uint64 { return t.size }

// ReadAt fills p with the tensor's bytes from offset on; it fails if they lie outside of the tensor.
func (t *Tensor) ReadAt(p []byte, offset uint64) error {
	if offset > t.size || uint64(len(p)) > t.size-offset {
		return fmt.Errorf("read tensor %s: bytes %d to %d are outside of its %d", t.Name, offset, offset+uint64(len(p)), t.size)
	}
	if _, err := t.file.ReadAt(p, int64(t.begin+offset)); err != nil {
		return fmt.Errorf("read tensor %s: %w", t.Name, err)
	}
	return nil
}

// Equal reports whether two tensors have the same type, shape and bytes.
func Equal(a, b *Tensor) (bool, error) {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return false, nil
	}
	const piece = 1 << 20
	left, right := make([]byte, min(piece, a.size)), make([]byte, min(piece, a.size))
	for at := uint64(0); at < a.size; at += piece {
		n := min(piece, a.size-at)
		if err := errors.Join(a.ReadAt(left[:n], at), b.ReadAt(right[:n], at)); err != nil {
			return false, err
		}
		if !bytes.Equal(left[:n], right[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// file is one opened safetensors file.
type file struct {
	*os.File
	size    uint64
	tensors []*Tensor // in the order of their data
}

// openFile opens and checks one file.
func openFile(path string) (*file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	tensors, err := parse(f, uint64(info.Size()), path)
	if err != nil {
		f.Close()
		return nil, err
	}
	out := &file{File: f, size: uint64(info.Size()), tensors: tensors}
	for _, t := range tensors {
		t.file = out
	}
	return out, nil
}

// entry is one tensor of the header.
type entry struct {
	DType   DType     `json:"dtype"`
	Shape   []int64   `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// parse reads the header of a file of a size. The data must follow it without gaps and reach to the file's end. So the
// digest of a checkpoint covers no bytes that a reader of the format ignores.
func parse(r io.ReaderAt, size uint64, name string) ([]*Tensor, error) {
	fail := func(section string, offset uint64, format string, args ...any) error {
		return &FormatError{File: name, Section: section, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	var prefix [8]byte
	if size < uint64(len(prefix)) {
		return nil, fail("header length", 0, "the file has %d bytes", size)
	}
	if _, err := r.ReadAt(prefix[:], 0); err != nil {
		return nil, fail("header length", 0, "%v", err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > maxHeader || length > size-8 {
		return nil, fail("header length", 0, "a header of %d bytes does not fit into the file's %d", length, size)
	}
	header := make([]byte, length)
	if _, err := r.ReadAt(header, 8); err != nil && !(errors.Is(err, io.EOF) && length == 0) {
		return nil, fail("header", 8, "%v", err)
	}
	entries, order, err := decodeHeader(header)
	if err != nil {
		return nil, fail("header", 8, "%v", err)
	}
	data := size - 8 - length
	var tensors []*Tensor
	for _, key := range order {
		e := entries[key]
		at := 8 + length + e.Offsets[0]
		width, known := sizes[e.DType]
		if !known {
			return nil, fail("tensor "+key, at, "unknown element type %q", e.DType)
		}
		if e.Offsets[0] > e.Offsets[1] || e.Offsets[1] > data {
			return nil, fail("tensor "+key, 8+length, "bytes %d to %d lie outside of the %d bytes of data", e.Offsets[0], e.Offsets[1], data)
		}
		want, ok := product(e.Shape, width)
		if !ok || want != e.Offsets[1]-e.Offsets[0] {
			return nil, fail("tensor "+key, at, "%s %v does not take %d bytes", e.DType, e.Shape, e.Offsets[1]-e.Offsets[0])
		}
		tensors = append(tensors, &Tensor{Name: key, DType: e.DType, Shape: e.Shape, begin: at, size: want})
	}
	slices.SortStableFunc(tensors, func(a, b *Tensor) int {
		// Empty tensors come before the one whose data begins at the same byte.
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.size, b.size))
	})
	next := 8 + length
	for _, t := range tensors {
		if t.begin != next {
			return nil, fail("tensor "+t.Name, t.begin, "data begins at byte %d, expected at %d", t.begin, next)
		}
		next += t.size
	}
	if next != size {
		return nil, fail("data", next, "%d bytes belong to no tensor", size-next)
	}
	return tensors, nil
}

// decodeHeader reads the header's object and the order of its keys, refusing a key that appears twice.
func decodeHeader(header []byte) (map[string]entry, []string, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, nil, errors.New("it is no JSON object")
	}
	entries := map[string]entry{}
	seen := map[string]bool{}
	var order []string
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, nil, plainjson.Explain(err)
		}
		key := token.(string) // the decoder yields only strings as keys
		if seen[key] {
			return nil, nil, fmt.Errorf("%q appears twice", key)
		}
		seen[key] = true
		if key == "__metadata__" {
			var meta map[string]string
			if err := d.Decode(&meta); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", key, plainjson.Explain(err))
			}
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, nil, fmt.Errorf("%q: %w", key, plainjson.Explain(err))
		}
		entries[key] = e
		order = append(order, key)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, plainjson.Explain(err)
	}
	return entries, order, nil
}

// product is the size in bytes of a shape, false if it overflows or a dimension is negative.
func product(shape []int64, width uint64) (uint64, bool) {
	n := width
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d != 0 && n > (1<<62)/uint64(d) {
			return 0, false
		}
		n *= uint64(d)
	}
	return n, true
}
