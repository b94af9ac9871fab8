package graphir

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"medusa/graphir/graphpb"
)

// Version is the format version that Encode writes and the newest that Decode reads.
const Version = 1

// MaxDecoded is the memory in bytes that a decoded Spec may take, contents left out: some 150,000 nodes. It keeps a
// few damaged bytes from naming a template often enough to exhaust memory. Encode writes nothing that exceeds it.
const MaxDecoded = 48 << 20

// Blob is a saved buffer's content, stored once however many Contents have it.
type Blob struct {
	SHA256 [32]byte
	Data   []byte
}

// Encode returns the graph section with all contents inside. Equal Specs give equal bytes.
func Encode(s *Spec) ([]byte, error) {
	graph, blobs, err := EncodeDetached(s)
	if err != nil {
		return nil, err
	}
	tail := &graphpb.Spec{}
	for i := range blobs {
		tail.BlobData = append(tail.BlobData, blobs[i].Data)
	}
	// Two encoded messages behind each other are their merger, and blob_data has the highest field number.
	out, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(graph, tail)
	if err != nil {
		return nil, fmt.Errorf("encode graph spec: %w", err)
	}
	return out, nil
}

// EncodeDetached returns the graph section without the contents' bytes, and these apart: each once, in the order in
// which the section names them. Their Data is that of s, not a copy.
func EncodeDetached(s *Spec) (graph []byte, blobs []Blob, err error) {
	if err := s.Validate(); err != nil {
		return nil, nil, err
	}
	e := &encoder{pb: &graphpb.Spec{Version: Version}, strings: map[string]uint32{}}
	e.text("")
	e.allocations(s)
	e.modules(s.Modules)
	e.kernels(s.Kernels)
	if err := e.graphs(s.Graphs); err != nil {
		return nil, nil, fmt.Errorf("encode graph spec: %w", err)
	}
	e.contents(s.Contents)
	e.tensors(s.Tensors)
	for _, t := range s.Triggers {
		e.pb.Triggers = append(e.pb.Triggers, &graphpb.Trigger{Batch: t.Batch, Kernels: t.Kernels, Launches: t.Launches})
	}
	graph, err = proto.MarshalOptions{Deterministic: true}.Marshal(e.pb)
	if err == nil {
		// Nothing is written that Decode would refuse as too large.
		_, err = decode(graph, func(_ *graphpb.Spec, i int) ([]byte, error) { return e.blobs[i].Data, nil })
	}
	if err != nil {
		return nil, nil, fmt.Errorf("encode graph spec: %w", err)
	}
	return graph, e.blobs, nil
}

// encoder fills the tables of the format in the order in which a Spec first needs their entries.
type encoder struct {
	pb      *graphpb.Spec
	strings map[string]uint32
	blobs   []Blob
	plans   []*plan
}

func (e *encoder) text(s string) uint32 {
	id, known := e.strings[s]
	if !known {
		id = uint32(len(e.pb.Strings))
		e.strings[s] = id
		e.pb.Strings = append(e.pb.Strings, s)
	}
	return id
}

func (e *encoder) allocations(s *Spec) {
	for _, a := range s.Allocations {
		live := byte(0)
		if a.Live {
			live = 1
		}
		e.pb.AllocKind = append(e.pb.AllocKind, byte(a.Kind))
		e.pb.AllocOwner = append(e.pb.AllocOwner, byte(a.Owner))
		e.pb.AllocLive = append(e.pb.AllocLive, live)
		e.pb.AllocSize = append(e.pb.AllocSize, a.Size)
	}
	gap := uint32(0)
	for _, step := range s.Sequence {
		if !step.Free {
			gap++
			continue
		}
		e.pb.FreeGap = append(e.pb.FreeGap, gap)
		e.pb.Freed = append(e.pb.Freed, step.Alloc)
		gap = 0
	}
}

func (e *encoder) modules(modules []Module) {
	for i := range modules {
		m := &modules[i]
		pb := &graphpb.Module{Kind: uint32(m.Kind), ImageSize: m.ImageSize, Dso: e.text(m.DSO), BuildId: e.text(m.BuildID),
			DsoOffset: m.DSOOffset}
		if m.ImageSHA256 != [32]byte{} {
			pb.ImageSha256 = m.ImageSHA256[:]
		}
		before := int32(0)
		for _, name := range m.Functions {
			id := int32(e.text(name))
			pb.Functions = append(pb.Functions, id-before)
			before = id
		}
		e.pb.Modules = append(e.pb.Modules, pb)
	}
}

func (e *encoder) kernels(kernels []Kernel) {
	for i := range kernels {
		k := &kernels[i]
		pb := &graphpb.Kernel{Name: e.text(k.Name), Module: k.Module}
		for _, p := range k.Params {
			pb.ParamOffset = append(pb.ParamOffset, p.Offset)
			pb.ParamSize = append(pb.ParamSize, p.Size)
		}
		for _, a := range k.Attrs {
			pb.AttrId = append(pb.AttrId, a.ID)
			pb.AttrValue = append(pb.AttrValue, a.Value)
		}
		e.pb.Kernels = append(e.pb.Kernels, pb)
	}
}

func (e *encoder) contents(contents []Content) {
	known := map[[32]byte]uint32{}
	for i := range contents {
		c := &contents[i]
		sum := sha256.Sum256(c.Data)
		id, stored := known[sum]
		if !stored {
			id = uint32(len(e.blobs))
			known[sum] = id
			e.blobs = append(e.blobs, Blob{SHA256: sum, Data: c.Data})
			e.pb.BlobSha256 = append(e.pb.BlobSha256, sum[:]...)
			e.pb.BlobSize = append(e.pb.BlobSize, uint64(len(c.Data)))
		}
		pb := &graphpb.Content{Alloc: c.Alloc, Offset: c.Offset, Blob: id}
		end := uint64(0)
		for _, f := range c.Fixups {
			pb.FixupGap = append(pb.FixupGap, uint64(f.Offset)-end)
			pb.FixupAlloc = append(pb.FixupAlloc, f.Pointer.Alloc)
			pb.FixupOffset = append(pb.FixupOffset, f.Pointer.Offset)
			end = uint64(f.Offset) + 8
		}
		end = 0
		for _, r := range c.Unstable {
			pb.UnstableGap = append(pb.UnstableGap, r.Offset-end)
			pb.UnstableSize = append(pb.UnstableSize, r.Size)
			end = r.Offset + r.Size
		}
		e.pb.Contents = append(e.pb.Contents, pb)
	}
}

func (e *encoder) tensors(tensors []Tensor) {
	for i := range tensors {
		t := &tensors[i]
		e.pb.Tensors = append(e.pb.Tensors, &graphpb.Tensor{Name: e.text(t.Name), Role: uint32(t.Role), Dtype: uint32(t.DType),
			Alloc: t.At.Alloc, Offset: t.At.Offset, Size: t.Size, Shape: t.Shape, Lo: t.Lo, Hi: t.Hi, Distinct: t.Distinct})
	}
}

// key joins numbers into something a map can be keyed by.
func key(numbers []uint32) string {
	out := make([]byte, 0, 2*len(numbers))
	for _, n := range numbers {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return string(out)
}
