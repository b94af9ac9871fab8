package graphir_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"medusa/graphir"
	"medusa/graphir/graphpb"
)

// wire is a Spec in its wire form, for damage that the types cannot express.
type wire struct {
	*graphpb.GraphSection
	*graphpb.BufferSection
	Graphs   []*graphpb.Graph
	Children []*graphpb.Graph
	BlobData [][]byte
	Rows     [][]*graphpb.Graph // by row group
	Trusting bool               // keep digests and sizes of row groups as they are
}

// message returns handmade in its wire form.
func message(t testing.TB) *wire { return open(t, handmade()) }

func open(t testing.TB, s *graphir.Spec) *wire {
	sections, err := graphir.EncodeDetached(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{GraphSection: &graphpb.GraphSection{}, BufferSection: &graphpb.BufferSection{}}
	if err := errors.Join(proto.Unmarshal(sections.Graph, w.GraphSection), proto.Unmarshal(sections.Buffers, w.BufferSection)); err != nil {
		t.Fatal(err)
	}
	for _, b := range sections.Blobs {
		w.BlobData = append(w.BlobData, bytes.Clone(b.Data))
	}
	for i := range sections.Groups {
		data, err := sections.Group(i, nil)
		if err != nil {
			t.Fatal(err)
		}
		group := &graphpb.RowGroup{}
		if err := proto.Unmarshal(data, group); err != nil {
			t.Fatal(err)
		}
		w.Rows = append(w.Rows, unpack(t, group.Graphs))
	}
	w.Graphs, w.Children = unpack(t, w.GraphSection.Graphs), unpack(t, w.GraphSection.Children)
	return w
}

func unpack(t testing.TB, packed [][]byte) []*graphpb.Graph {
	out := make([]*graphpb.Graph, len(packed))
	for i := range packed {
		out[i] = &graphpb.Graph{}
		if err := proto.Unmarshal(packed[i], out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func pack(t testing.TB, graphs []*graphpb.Graph) [][]byte {
	out := make([][]byte, len(graphs))
	for i := range graphs {
		var err error
		if out[i], err = proto.Marshal(graphs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (w *wire) encode(t testing.TB) []byte {
	w.GraphSection.Graphs, w.GraphSection.Children = pack(t, w.Graphs), pack(t, w.Children)
	var groups [][]byte
	for i, rows := range w.Rows {
		data, err := proto.Marshal(&graphpb.RowGroup{Graphs: pack(t, rows)})
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); !w.Trusting && i < len(w.GroupSize) && 32*i+32 <= len(w.GroupSha256) {
			w.GroupSize[i] = uint32(len(data))
			copy(w.GroupSha256[32*i:], sum[:])
		}
		groups = append(groups, data)
	}
	graph, err := proto.Marshal(w.GraphSection)
	if err != nil {
		t.Fatal(err)
	}
	buffers, err := proto.Marshal(w.BufferSection)
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(&graphpb.Spec{Graph: graph, Buffers: buffers, BlobData: w.BlobData, GroupData: groups})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodeMessage(t *testing.T, pb *wire) error {
	data := pb.encode(t)
	s, err := graphir.Decode(data)
	if (s == nil) == (err == nil) {
		t.Errorf("spec %v with error %v", s, err)
	}
	return err
}

func TestDecodeNamesTheDamage(t *testing.T) {
	for _, test := range []struct {
		want  string
		spoil func(pb *wire)
	}{
		{"decode graph: no graph section", func(pb *wire) { pb.Version = 0 }},
		{"decode graph: no graph section", func(pb *wire) { pb.Strings = nil }},
		{"decode allocations: columns of unequal length", func(pb *wire) { pb.AllocKind = pb.AllocKind[1:] }},
		{"decode allocations[0]: alloc_live 4", func(pb *wire) { pb.AllocLive[0] = 4 }},
		{"decode sequence: columns of unequal length", func(pb *wire) { pb.Freed = nil }},
		{"decode sequence[0]: 5 allocations of 4", func(pb *wire) { pb.FreeGap[0] = 5 }},
		{"decode modules[0]: string 99 of", func(pb *wire) { pb.Modules[0].Dso = 99 }},
		{"decode modules[0]: string 4294967295 of", func(pb *wire) { pb.Modules[0].Functions[0] = -1 }},
		{"decode modules[0]: kind 258", func(pb *wire) { pb.Modules[0].Kind = 258 }},
		{"decode modules[0]: image_sha256 of 31 bytes", func(pb *wire) { pb.Modules[0].ImageSha256 = make([]byte, 31) }},
		{"decode kernels[1]: columns of unequal length", func(pb *wire) { pb.Kernels[1].ParamSize = nil }},
		{"decode attr_sets[0]: columns of unequal length", func(pb *wire) { pb.AttrSets[0].Value = nil }},
		{"decode shapes[0]: node type 4", func(pb *wire) { pb.Shapes[0].Type = 4 }},
		{"decode shapes[0]: node type 256", func(pb *wire) { pb.Shapes[0].Type = 256 }},
		{"decode shapes[0]: node type 2 with a kernel's fields", func(pb *wire) { pb.Shapes[0].Type = 2 }},
		{"decode shapes[0]: 4294967295 bytes of parameters", func(pb *wire) { pb.Shapes[0].ParamsSize = 1<<32 - 1 }},
		{"decode shapes[0]: relocation at byte 4294967295 of 12", func(pb *wire) { pb.Shapes[0].RelocationGap[0] = 1<<32 - 1 }},
		{"decode shapes[0]: attr_set 1 of 1", func(pb *wire) { pb.Shapes[0].AttrSet = 2 }},
		{"decode templates[0]: node 1: shape 5 of 5", func(pb *wire) { pb.Templates[0].Nodes[1] = 5 }},
		{"decode templates[0]: columns of unequal length", func(pb *wire) { pb.Templates[0].EdgeTo = nil }},
		{"decode templates[0]: edge 0: data 0x1000000", func(pb *wire) { pb.Templates[0].EdgeData[0] = 1 << 24 }},
		{"decode graphs[1]: template 1 of 1", func(pb *wire) { pb.Graphs[1].Template = 1 }},
		{"decode graphs[1]: base 1 is not an earlier graph", func(pb *wire) { pb.Graphs[1].Base = 2 }},
		{"decode graphs[1]: base is of another template", func(pb *wire) {
			pb.Templates = append(pb.Templates, pb.Templates[0])
			pb.Graphs[1].Template = 1
		}},
		{"decode graphs[0]: grid: columns of unequal length", func(pb *wire) { pb.Graphs[0].Grid.Gap = nil }},
		{"decode graphs[0]: grid: change at entry 6 of 6", func(pb *wire) { pb.Graphs[0].Grid.Gap[0] = 6 }},
		{"decode graphs[0]: grid: delta beyond 32 bits", func(pb *wire) { pb.Graphs[0].Grid.Delta[0] = 1 << 31 }},
		{"decode graphs[0]: memset: change at entry 7 of 7", func(pb *wire) { pb.Graphs[0].Memset.Gap[0] = 7 }},
		{"decode graphs[0]: node 2: value beyond 32 bits", func(pb *wire) { pb.Graphs[0].Memset.Delta[0] = 1 << 32 }},
		{"decode graphs[0]: node 3: value beyond 32 bits", func(pb *wire) {
			pb.Graphs[0].Memcpy = &graphpb.Changes{Gap: []uint32{7}, Delta: []int64{1 << 32}}
		}},
		{"decode graphs[0]: node 1: padding of a parameter buffer is not zero", func(pb *wire) {
			pb.Graphs[0].Words = &graphpb.Changes{Gap: []uint32{7}, Delta: []int64{1 << 16}}
		}},
		{"decode blobs: columns of unequal length", func(pb *wire) { pb.BlobSize = pb.BlobSize[1:] }},
		{"decode blobs[0]: only 0 blobs are present", func(pb *wire) { pb.BlobData = nil }},
		{"decode blobs[0]: content does not match its digest", func(pb *wire) { pb.BlobData[0][0]++ }},
		{"decode blobs[0]: content does not match its digest", func(pb *wire) { pb.BlobSize[0]++ }},
		{"decode blobs[1]: no content refers to it", func(pb *wire) { pb.Contents = pb.Contents[:1] }},
		{"decode contents[0]: blob 2 of 2", func(pb *wire) { pb.Contents[0].Blob = 2 }},
		{"decode contents[0]: columns of unequal length", func(pb *wire) { pb.Contents[0].RelocationAlloc = nil }},
		{"decode contents[0]: relocation 0 outside of 16 bytes", func(pb *wire) { pb.Contents[0].RelocationGap[0] = 9 }},
		{"decode contents[1]: unstable range 0 outside of 4 bytes", func(pb *wire) { pb.Contents[1].UnstableSize[0] = 1<<64 - 1 }},
		{"decode tensors[1]: role 256, type 2", func(pb *wire) { pb.Tensors[1].Role = 256 }},
		{"decode blobs[2]: no content refers to it", func(pb *wire) { pb.BlobData = append(pb.BlobData, nil) }},
		{"decode triggers: columns of unequal length", func(pb *wire) { pb.TriggerLaunches = make([]uint32, 2) }},
		{"decode spec: check graph spec: triggers[0].kernels[0]: kernel 7 of 2", func(pb *wire) { pb.Triggers[0].Kernels[0] = 7 }},
	} {
		pb := message(t)
		test.spoil(pb)
		err := decodeMessage(t, pb)
		var format *graphir.FormatError
		if !errors.Is(err, graphir.ErrCorrupt) || !errors.As(err, &format) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
}

func TestDecodeForeign(t *testing.T) {
	for _, data := range []string{"", "x", "\x7fELF\x02\x01\x01", strings.Repeat("\xff", 100)} {
		if _, err := graphir.Decode([]byte(data)); !errors.Is(err, graphir.ErrCorrupt) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func TestDecodeNewerVersion(t *testing.T) {
	pb := message(t)
	pb.Version = graphir.Version + 1
	if err := decodeMessage(t, pb); !errors.Is(err, graphir.ErrVersion) || errors.Is(err, graphir.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// Fields that a newer writer adds without a new version are skipped.
func TestDecodeSkipsUnknownFields(t *testing.T) {
	unknown := []byte{0xf8, 0x06, 1} // field 111, varint 1
	w := message(t)
	w.GraphSection.ProtoReflect().SetUnknown(unknown)
	w.BufferSection.ProtoReflect().SetUnknown(unknown)
	s, err := graphir.Decode(append(w.encode(t), unknown...))
	if err != nil || !graphir.Equal(s, handmade()) {
		t.Errorf("got %v", err)
	}
}

// A few bytes must not claim much memory, neither by entries of two bytes that become structs, nor by graphs that name a large
// template.
func TestDecodeBoundsMemory(t *testing.T) {
	large := message(t)
	large.Templates[0].Nodes = make([]uint32, 1<<16) // shape 0: a kernel node
	for range 100 {
		large.Graphs = append(large.Graphs, &graphpb.Graph{Label: 1, Base: 1})
	}
	for _, g := range large.Graphs {
		g.Memset, g.Memcpy = nil, nil // the template has no such nodes any more
	}
	long := message(t)
	long.Templates = append(long.Templates, &graphpb.Template{Nodes: make([]uint32, 1<<20)})
	many := message(t)
	for range 1 << 18 {
		many.Tensors = append(many.Tensors, &graphpb.Tensor{})
	}
	numbers := message(t)
	numbers.AllocSize = make([]uint64, 12<<20)
	deltas := message(t)
	deltas.Graphs[0].Words = &graphpb.Changes{Delta: make([]int64, 12<<20)}
	for name, pb := range map[string]*wire{"large template": large, "long template": long, "many entries": many, "numbers": numbers, "deltas": deltas} {
		data := pb.encode(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, got := graphir.Decode(data)
		runtime.ReadMemStats(&after)
		bytes := int64(after.TotalAlloc - before.TotalAlloc)
		// Deltas take no memory; their number only has to match the gaps.
		if limit := int64(64<<20 + 4*len(data)); !errors.Is(got, graphir.ErrCorrupt) || bytes > limit ||
			!strings.Contains(got.Error(), "bytes decoded") && name != "deltas" {
			t.Errorf("%s: %d bytes of input took %d, limit %d: %v", name, len(data), bytes, limit, got)
		}
	}
}

// Graphs are built from common templates and columns. A change to one graph must not change another.
func TestDecodedPartsShareNothing(t *testing.T) {
	want := handmade()
	want.Graphs[1] = want.Graphs[0]
	got := reread(t, want)
	first := &got.Graphs[0]
	first.Edges[0].To = 4
	k := first.Nodes[0].Kernel()
	_ = append(k.Params, 0xff, 0xff, 0xff, 0xff)
	_ = append(k.Relocations, graphir.Relocation{Offset: 77})
	for i := range k.Params {
		k.Params[i] = 0xff
	}
	k.Relocations[0].Pointer.Index = 1
	first.Edges, first.Nodes[0] = want.Graphs[0].Edges, want.Graphs[0].Nodes[0]
	if !graphir.Equal(want, got) {
		t.Errorf("a change in one graph shows in another:\n%s", cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}

// A library clears a workspace of tens of megabytes for each stream. All of them together take the memory of one.
func TestEqualContentsShareTheirBytes(t *testing.T) {
	want := handmade()
	data := make([]byte, 1<<20)
	want.Allocations[3].Size = 64 << 20
	want.Contents = nil
	for i := range uint64(64) {
		want.Contents = append(want.Contents, graphir.Content{Alloc: 3, Offset: i << 20, Data: data})
	}
	got := reread(t, want)
	for i, c := range got.Contents {
		if &c.Data[0] != &got.Contents[0].Data[0] || !bytes.Equal(c.Data, data) {
			t.Fatalf("content %d of %d has bytes of its own, or other ones", i, len(got.Contents))
		}
	}
}
