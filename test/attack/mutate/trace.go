package mutate

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"medusa/interpose/trace"
	"medusa/test/tracewriter"
)

// Trace returns the bytes of a trace with some of its records changed, and a description. The records given are left as
// they are.
func Trace(records []trace.Record, r *rand.Rand) (data []byte, what string, err error) {
	out := slices.Clone(records)
	if _, last := out[len(out)-1].(*trace.End); last {
		out = out[:len(out)-1]
	}
	var said []string
	for range 1 + r.IntN(3) {
		said = append(said, changeRecords(&out, r))
	}
	var buffer bytes.Buffer
	w := tracewriter.New(&buffer)
	for _, rec := range out {
		w.Write(clone(rec)) // which numbers it
	}
	err = w.End()
	return buffer.Bytes(), strings.Join(said, "; "), err
}

func clone(rec trace.Record) trace.Record {
	v := reflect.New(reflect.TypeOf(rec).Elem())
	v.Elem().Set(reflect.ValueOf(rec).Elem())
	return v.Interface().(trace.Record)
}

// changeRecords makes one change. The first record stays: it opens a trace.
func changeRecords(list *[]trace.Record, r *rand.Rand) string {
	records := *list
	if len(records) < 3 {
		return "nothing"
	}
	// Kinds have equal chances, or the records of launches alone would be changed.
	byType := map[trace.Type][]int{}
	var types []trace.Type
	for i, rec := range records[1:] {
		t := rec.RecordType()
		if byType[t] == nil {
			types = append(types, t)
		}
		byType[t] = append(byType[t], i+1)
	}
	same := byType[types[r.IntN(len(types))]]
	i := same[r.IntN(len(same))]
	name := strings.TrimPrefix(fmt.Sprintf("%T", records[i]), "*trace.")
	switch r.IntN(8) {
	case 0:
		*list = slices.Delete(records, i, i+1)
		return "delete " + name
	case 1:
		*list = slices.Insert(records, 1+r.IntN(len(records)-1), records[i])
		return "repeat " + name
	case 2:
		j := 1 + r.IntN(len(records)-1)
		records[i], records[j] = records[j], records[i]
		return "move " + name
	case 3:
		for range 1 << r.IntN(12) {
			*list = slices.Insert(*list, i, records[i])
		}
		return "flood of " + name
	default:
		records[i] = clone(records[i])
		return name + changeField(reflect.ValueOf(records[i]).Elem(), r)
	}
}

// changeField changes one field of a record, other than its head, or of a tuple.
func changeField(v reflect.Value, r *rand.Rand) string {
	first := 0
	if v.Type().Field(0).Name == "Head" {
		first = 1
	}
	if v.NumField() == first {
		return ""
	}
	i := first + r.IntN(v.NumField()-first)
	return "." + v.Type().Field(i).Name + changeValue(v.Field(i), r)
}

func changeValue(f reflect.Value, r *rand.Rand) string {
	switch f.Kind() {
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		f.SetUint(number(f.Uint(), r) & (1<<(f.Type().Bits()-1)<<1 - 1))
		return fmt.Sprintf(" = %d", f.Uint())
	case reflect.Int64:
		f.SetInt(int64(number(uint64(f.Int()), r)))
		return fmt.Sprintf(" = %d", f.Int())
	case reflect.Float64:
		f.SetFloat([]float64{-1, 2, math.NaN(), math.Inf(1)}[r.IntN(4)])
		return fmt.Sprintf(" = %g", f.Float())
	case reflect.String:
		f.SetString(string(changeBytes([]byte(f.String()), r)))
		return fmt.Sprintf(" = %.40q", f.String())
	case reflect.Slice:
		return changeSlice(f, r)
	case reflect.Struct:
		return changeField(f, r)
	default:
		return " is of an unknown type"
	}
}

func changeSlice(f reflect.Value, r *rand.Rand) string {
	if f.Type().Elem().Kind() == reflect.Uint8 {
		f.SetBytes(changeBytes(f.Bytes(), r))
		return fmt.Sprintf(" = %d bytes", f.Len())
	}
	n := f.Len()
	if n == 0 {
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		return " has an entry"
	}
	own := reflect.MakeSlice(f.Type(), n, n)
	reflect.Copy(own, f)
	i := r.IntN(n)
	switch r.IntN(3) {
	case 0:
		f.Set(own.Slice(0, i))
		return fmt.Sprintf(" cut to %d", i)
	case 1:
		f.Set(reflect.Append(own, own.Index(i)))
		return fmt.Sprintf(" repeats %d", i)
	default:
		f.Set(own)
		return fmt.Sprintf("[%d]", i) + changeValue(own.Index(i), r)
	}
}

// Copy returns the bytes of a trace as it is.
func Copy(records []trace.Record) ([]byte, error) {
	return HostileTrace{make: func(records []trace.Record, _ uint64) []trace.Record { return records }}.Write(records, 0)
}
