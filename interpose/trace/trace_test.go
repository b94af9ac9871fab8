package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"medusa/test/tracewriter"
)

// oneOfEach returns every record type with every field set to a non-zero value.
func oneOfEach() []Record {
	var out []Record
	last := TypeEnd
	for t := TypeProcess; t < last; t++ {
		r := newRecord(t)
		fill(reflect.ValueOf(r).Elem(), 1)
		*r.Header() = Head{Time: uint64(t) * 10, Thread: uint32(t) % 3}
		out = append(out, r)
	}
	return out
}

func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+i)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.String:
		v.SetString(string(rune('a' + n)))
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	case reflect.Int64:
		v.SetInt(int64(-n))
	default:
		v.SetUint(uint64(n))
	}
}

func encode(t testing.TB, recs []Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tracewriter.New(&b)
	for i, r := range recs {
		w.Write(r)
		if i%5 == 4 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(b []byte) ([]Record, error) {
	r, err := NewReader("test", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	return r.all()
}

// Memory of chunks is used again, also by the next reader.
func TestRecordsOutliveTheirChunk(t *testing.T) {
	var want []Record
	for i := range byte(5) {
		want = append(want, &Content{Data: bytes.Repeat([]byte{i}, 2*lendFrom)}, &Kernel{Params: bytes.Repeat([]byte{i}, lendFrom/2), Grid: []uint32{uint32(i), 1, 1}})
	}
	want = append([]Record{&Process{Protocol: 1}}, want...)
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, encode(t, want), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAll(path); err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if c, ok := w.(*Content); ok && !bytes.Equal(got[i].(*Content).Data, c.Data) {
			t.Errorf("record %d: contents of another chunk", i)
		}
		if k, ok := w.(*Kernel); ok && (!bytes.Equal(got[i].(*Kernel).Params, k.Params) || !slices.Equal(got[i].(*Kernel).Grid, k.Grid)) {
			t.Errorf("record %d: parameters of another chunk", i)
		}
	}
}

func TestRoundTripOfEveryRecord(t *testing.T) {
	want := oneOfEach()
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, encode(t, want), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want)+1 {
		t.Fatalf("%d records, want %d and the end", len(got), len(want))
	}
	for i, r := range want {
		if !reflect.DeepEqual(got[i], r) {
			t.Errorf("record %d (%s): got %+v, want %+v", i, r.RecordType(), got[i], r)
		}
	}
	if end := got[len(want)].(*End); end.Records != uint64(len(want)) {
		t.Errorf("end counts %d", end.Records)
	}
}

// A trace that is cut at any byte is incomplete: never complete, never corrupt.
func TestTruncatedAtEveryByte(t *testing.T) {
	whole := encode(t, oneOfEach())
	for n := range whole {
		_, err := decode(whole[:n])
		var at *Error
		if !errors.Is(err, ErrIncomplete) || !errors.As(err, &at) || at.File != "test" || at.Section == "" {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// A flipped bit is found anywhere.
func TestBitFlipsAreFound(t *testing.T) {
	whole := encode(t, oneOfEach())
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			_, err := decode(b)
			var at *Error
			if !errors.As(err, &at) || at.Offset > int64(len(b)) {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
			var want []error
			switch {
			case i < len(magic):
				want = []error{errForeign}
			case i < headerSize:
				want = []error{errVersion}
			default: // a flipped length may exceed the end of the file
				want = []error{errCorrupt, ErrIncomplete}
			}
			if !isAny(err, want) {
				t.Fatalf("byte %d bit %d: %v, want one of %v", i, bit, err, want)
			}
		}
	}
}

func isAny(err error, want []error) bool {
	for _, w := range want {
		if errors.Is(err, w) {
			return true
		}
	}
	return false
}

func TestRefusesWhatIsNoTrace(t *testing.T) {
	whole := encode(t, oneOfEach())
	process := oneOfEach()[0]
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, ErrIncomplete},
		{"foreign", []byte("\x7fELF and more of it"), errForeign},
		{"bytes after the end", append(bytes.Clone(whole), 0), errCorrupt},
		{"a second trace after the end", append(bytes.Clone(whole), whole[headerSize:]...), errCorrupt},
		{"no process record", encode(t, oneOfEach()[1:]), errCorrupt},
		{"two process records", encode(t, []Record{process, &Process{}}), errCorrupt},
		{"a record of a later version", encode(t, []Record{process, &later{}}), errVersion},
	} {
		if _, err := decode(c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// later is a record type that this version does not know.
type later struct{ Head }

func (*later) RecordType() Type { return 999 }
func (*later) decode(*decoder)  {}

// A record with a field that this version does not know is read without that field.
func TestAppendedFieldIsSkipped(t *testing.T) {
	got, err := decode(encode(t, []Record{oneOfEach()[0], &longer{Phase{Name: "warmup"}, "a field of next year"}}))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := got[1].(*Phase); !ok || p.Name != "warmup" {
		t.Errorf("got %+v", got[1])
	}
}

type longer struct {
	Phase
	More string
}

func TestNextAfterTheEndAndAfterAnError(t *testing.T) {
	whole := encode(t, oneOfEach())
	r, err := NewReader("test", bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.all(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
	}
	r, err = NewReader("test", bytes.NewReader(whole[:len(whole)-1]), int64(len(whole)-1))
	if err != nil {
		t.Fatal(err)
	}
	recs, first := r.all()
	if len(recs) == 0 {
		t.Error("no records before the bad place")
	}
	if _, again := r.Next(); again != first {
		t.Errorf("error changed from %v to %v", first, again)
	}
}

// For any bytes, reading gives a typed error, or records that are the same after being written and read again.
func FuzzReader(f *testing.F) {
	whole := encode(f, oneOfEach())
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(magic))
	f.Add(sealed(whole[headerSize+chunkHead:]))
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b)
		// With a matching checksum, so that mutations reach the records.
		check(t, sealed(b))
	})
}

// sealed frames payload as the one chunk of a trace.
func sealed(payload []byte) []byte {
	var b bytes.Buffer
	w := tracewriter.New(&b)
	if err := w.Chunk(payload); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func check(t *testing.T, b []byte) {
	recs, err := decode(b)
	if err != nil {
		var at *Error
		if !errors.As(err, &at) || !isAny(err, []error{ErrIncomplete, errCorrupt, errForeign, errVersion}) {
			t.Fatalf("untyped error %v", err)
		}
		return
	}
	if _, ok := recs[len(recs)-1].(*End); !ok {
		t.Fatal("no error and no end record")
	}
	again, err := decode(encode(t, recs[:len(recs)-1]))
	if err != nil {
		t.Fatalf("written again: %v", err)
	}
	for i := range recs[:len(recs)-1] {
		// Compare the formatted records, because NaN is not equal to itself.
		if a, b := sprint(recs[i]), sprint(again[i]); a != b {
			t.Fatalf("record %d: %s, written again: %s", i, a, b)
		}
	}
}

func sprint(r Record) string { return fmt.Sprintf("%T %+v", r, r) }

// Skipped records are not decoded, but their framing is checked. The first and the last record are never skipped.
func TestOnly(t *testing.T) {
	recs := oneOfEach()
	data := encode(t, recs)
	r, err := NewReader("x", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	r.Only(func(typ Type) bool { return typ == TypeGraph || typ == TypeEdge })
	got, err := r.all()
	if err != nil {
		t.Fatal(err)
	}
	var types []Type
	for _, rec := range got {
		types = append(types, rec.RecordType())
	}
	if want := []Type{TypeProcess, TypeGraph, TypeEdge, TypeEnd}; !reflect.DeepEqual(types, want) {
		t.Errorf("got %v, want %v", types, want)
	}
}
