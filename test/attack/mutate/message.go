package mutate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// edit is one possible change of a message.
type edit struct {
	what string // the field
	do   func(r *rand.Rand) string
}

// edits lists the possible changes of all fields of a message and of the messages below it. Those that are absent count:
// an absent number is a zero that can be another. leave names the fields that stay as they are.
func edits(m protoreflect.Message, path string, leave func(protoreflect.FieldDescriptor) bool, out []edit) []edit {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if leave(field) {
			continue
		}
		at := path + "." + string(field.Name())
		switch {
		case field.IsList() && m.Has(field):
			out = listEdits(m, field, at, leave, out)
		case field.IsList():
		case field.Message() != nil && m.Has(field):
			out = append(out, edit{at, func(*rand.Rand) string { m.Clear(field); return "clear" }})
			out = edits(m.Mutable(field).Message(), at, leave, out)
		case field.Message() != nil:
		default:
			out = append(out, edit{at, func(r *rand.Rand) string {
				v := change(field, m.Get(field), r)
				m.Set(field, v)
				return "= " + show(v)
			}})
		}
	}
	return out
}

func listEdits(m protoreflect.Message, field protoreflect.FieldDescriptor, at string, leave func(protoreflect.FieldDescriptor) bool, out []edit) []edit {
	list := m.Mutable(field).List()
	out = append(out, edit{at, func(r *rand.Rand) string { return rearrange(list, r) }})
	for i := range list.Len() {
		at := fmt.Sprintf("%s[%d]", at, i)
		if field.Message() != nil {
			out = edits(list.Get(i).Message(), at, leave, out)
			continue
		}
		out = append(out, edit{at, func(r *rand.Rand) string {
			if i >= list.Len() { // an earlier change made the list shorter
				return "gone"
			}
			v := change(field, list.Get(i), r)
			if r.IntN(3) == 0 { // often an index that is right somewhere else
				v = list.Get(r.IntN(list.Len()))
			}
			list.Set(i, v)
			return "= " + show(v)
		}})
	}
	return out
}

// rearrange changes a list as a whole.
func rearrange(list protoreflect.List, r *rand.Rand) string {
	n := list.Len()
	if n == 0 {
		return "empty"
	}
	a, b := r.IntN(n), r.IntN(n)
	switch r.IntN(5) {
	case 0:
		x, y := list.Get(a), list.Get(b)
		list.Set(a, y)
		list.Set(b, x)
		return fmt.Sprintf("swap %d and %d", a, b)
	case 1:
		list.Append(copied(list.Get(a)))
		return fmt.Sprintf("repeat %d", a)
	case 2:
		for i := a; i < n-1; i++ {
			list.Set(i, list.Get(i+1))
		}
		list.Truncate(n - 1)
		return fmt.Sprintf("delete %d", a)
	case 3:
		list.Truncate(a)
		return fmt.Sprintf("cut to %d", a)
	default:
		for range 1 << r.IntN(8) {
			list.Append(copied(list.Get(a)))
		}
		return fmt.Sprintf("repeat %d to %d", a, list.Len())
	}
}

// copied keeps two entries of a list from being one message.
func copied(v protoreflect.Value) protoreflect.Value {
	if m, ok := v.Interface().(protoreflect.Message); ok {
		return protoreflect.ValueOfMessage(proto.Clone(m.Interface()).ProtoReflect())
	}
	return v
}

func show(v protoreflect.Value) string {
	text := fmt.Sprintf("%q", v.String())
	return text[:min(len(text), 60)]
}

// bounds are values at which sizes, counts and indices overflow, wrap or turn negative.
var bounds = []uint64{0, 1, 2, 3, 7, 8, 255, 256, 4095, 4096, 65535, 65536, 1<<24 - 1, 1 << 26, math.MaxInt32, 1 << 31, math.MaxUint32, 1 << 32,
	1<<32 + 8, 1 << 40, 1 << 46, 1 << 62, math.MaxInt64, 1 << 63, math.MaxUint64 - 7, math.MaxUint64}

// number returns another value: near the old one, at a bound, or any.
func number(old uint64, r *rand.Rand) uint64 {
	switch r.IntN(4) {
	case 0:
		return old + uint64(r.IntN(5)) - 2
	case 1:
		return old ^ 1<<r.IntN(64)
	case 2:
		return bounds[r.IntN(len(bounds))]
	default:
		return r.Uint64() >> r.IntN(64)
	}
}

var texts = []string{"", "a", "../x", "/", "\x1b[2J\x1b]0;x\x07", "a\nb", "a\x00b", "\u202eb", strings.Repeat("y", 5000)}

// change returns another value for a field that is no message.
func change(field protoreflect.FieldDescriptor, v protoreflect.Value, r *rand.Rand) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(number(v.Uint(), r)))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(number(v.Uint(), r))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32(int32(number(uint64(v.Int()), r)))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(int64(number(uint64(v.Int()), r)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{-1, 0, 0.5, 2, math.Inf(1), math.NaN(), math.MaxFloat64}[r.IntN(7)])
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!v.Bool())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.ToValidUTF8(string(changeBytes([]byte(v.String()), r)), "?") + texts[r.IntN(len(texts))])
	default:
		return protoreflect.ValueOfBytes(changeBytes(v.Bytes(), r))
	}
}

// changeBytes changes, cuts, repeats or replaces some bytes, eight at a time because they may be words.
func changeBytes(old []byte, r *rand.Rand) []byte {
	b := slices.Clone(old)
	if len(b) == 0 {
		return append(b, byte(r.Uint32()))
	}
	at := r.IntN(len(b))
	switch r.IntN(5) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
	case 1:
		b = b[:at]
	case 2:
		b = append(b, b[at:]...)
	case 3:
		b[at] = []byte{0, 1, 2, 3, 4, 0x7f, 0x80, 0xff}[r.IntN(8)]
	default:
		word := bounds[r.IntN(len(bounds))]
		for i := range min(8, len(b)-at) {
			b[at+i] = byte(word >> (8 * i))
		}
	}
	return b
}
