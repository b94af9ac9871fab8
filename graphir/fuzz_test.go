package graphir_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"medusa/graphir"
	"medusa/graphir/graphpb"
	"medusa/test/randspec"
	"medusa/test/testmem"
)

// FuzzDecode: Decode returns either a value or an error. A decoded Spec can be checked, printed and encoded again.
func FuzzDecode(f *testing.F) {
	for seed := range uint64(20) {
		data, err := graphir.Encode(randspec.New(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for seed := range uint64(5) {
		f.Add(grouped(f, randspec.New(seed)).encode(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) { decodeSafely(t, data) })
}

// decodeSafely says whether data was accepted.
func decodeSafely(t *testing.T, data []byte) bool {
	var s *graphir.Spec
	var err error
	testmem.Bounded(t, len(data), func() { s, err = graphir.Decode(data) })
	if (s == nil) == (err == nil) {
		t.Fatalf("spec %v with error %v", s, err)
	}
	if err != nil {
		if !errors.Is(err, graphir.ErrCorrupt) && !errors.Is(err, graphir.ErrVersion) {
			t.Fatalf("untyped error %v", err)
		}
		return false
	}
	// Decode did not read the row groups; Validate does.
	testmem.Bounded(t, len(data), func() { err = s.Validate() })
	if s.Rows != nil && errors.Is(err, graphir.ErrCorrupt) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteText(io.Discard); err != nil {
		t.Fatal(err)
	}
	once, err := graphir.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := graphir.Decode(once)
	if err != nil || !graphir.Equal(s, again) {
		t.Fatalf("not the same after another round: %v", err)
	}
	if twice, err := graphir.Encode(again); err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("encoding depends on its history: %v", err)
	}
	return true
}

// TestDecodeChangedFields changes single values in well-formed messages. That gets deeper into the decoder than changing bytes.
func TestDecodeChangedFields(t *testing.T) {
	accepted := 0
	const rounds = 3000
	for seed := range uint64(rounds) {
		w := open(t, randspec.New(seed%50))
		if seed%4 == 0 {
			w = grouped(t, randspec.New(seed%50))
		}
		r := rand.New(rand.NewPCG(seed, 2))
		var leaves []func()
		w.GraphSection.Graphs, w.GraphSection.Children = nil, nil // they are in w.Graphs and w.Children
		collectLeaves(w.GraphSection.ProtoReflect(), r, &leaves)
		for _, g := range slices.Concat(w.Graphs, w.Children, slices.Concat(w.Rows...)) {
			collectLeaves(g.ProtoReflect(), r, &leaves)
		}
		collectLeaves(w.BufferSection.ProtoReflect(), r, &leaves)
		for range 1 + r.IntN(2) {
			leaves[r.IntN(len(leaves))]()
		}
		data := w.encode(t)
		if decodeSafely(t, data) {
			accepted++
		}
	}
	if accepted < rounds/10 || accepted > rounds*9/10 {
		t.Errorf("%d of %d changed messages accepted: the changes test only one outcome", accepted, rounds)
	}
}

// grouped is a small spec with all its graphs in one row group. No encoder would write it so.
func grouped(t testing.TB, s *graphir.Spec) *wire {
	w := open(t, s)
	if len(w.Graphs) == 0 {
		return w
	}
	w.Version = 3
	for i, g := range w.Graphs {
		row := proto.Clone(g).(*graphpb.Graph)
		row.Label, row.Batch, row.InstantiateFlags, row.Template = 0, 0, 0, 0
		w.Graphs[i] = &graphpb.Graph{Label: g.Label, Batch: g.Batch, InstantiateFlags: g.InstantiateFlags, Template: g.Template}
		if i == 0 {
			w.Rows = [][]*graphpb.Graph{nil}
		}
		w.Rows[0] = append(w.Rows[0], row)
	}
	w.GroupGraphs, w.GroupSize, w.GroupSha256 = []uint32{uint32(len(w.Graphs))}, []uint32{0}, make([]byte, 32)
	before := 0
	for object, is := range s.Referred() {
		if is {
			w.Referred = append(w.Referred, uint32(object-before))
			before = object
		}
	}
	return w
}

// A hand-made row group decodes to the graphs from which it was made.
func TestSmallRowGroup(t *testing.T) {
	for seed := range uint64(50) {
		want := randspec.New(seed)
		got, err := graphir.Decode(grouped(t, want).encode(t))
		if err != nil || !graphir.Equal(got, want) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// collectLeaves returns one change for every value and every list below m.
func collectLeaves(m protoreflect.Message, r *rand.Rand, out *[]func()) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList():
			list := value.List()
			*out = append(*out,
				func() { list.Truncate(r.IntN(list.Len() + 1)) },
				func() {
					if list.Len() > 0 {
						list.Append(list.Get(r.IntN(list.Len())))
					}
				})
			for i := range list.Len() {
				if field.Message() != nil {
					collectLeaves(list.Get(i).Message(), r, out)
				} else {
					*out = append(*out, func() {
						if i < list.Len() {
							list.Set(i, change(field, list.Get(i), r))
						}
					})
				}
			}
		case field.Message() != nil:
			collectLeaves(value.Message(), r, out)
		default:
			*out = append(*out, func() { m.Set(field, change(field, m.Get(field), r)) })
		}
		return true
	})
}

func change(field protoreflect.FieldDescriptor, v protoreflect.Value, r *rand.Rand) protoreflect.Value {
	small := int64(r.IntN(5)) - 2
	if r.IntN(4) == 0 {
		small = int64(r.Uint64() >> r.IntN(64))
	}
	switch field.Kind() {
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(int64(v.Uint()) + small))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(v.Uint() + uint64(small))
	case protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32(int32(v.Int() + small))
	case protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(v.Int() + small)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!v.Bool())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.String() + "x")
	default:
		b := slices.Clone(v.Bytes())
		if len(b) == 0 || r.IntN(2) == 0 {
			return protoreflect.ValueOfBytes(append(b, byte(small)))
		}
		b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
		return protoreflect.ValueOfBytes(b)
	}
}
