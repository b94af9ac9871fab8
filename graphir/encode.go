package graphir

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"medusa/graphir/graphpb"
)

// Version is the newest format version that Decode reads. Encode writes the oldest version that can express the Spec.
const Version = 3

// maxDecoded is the most memory in bytes for a decoded Spec without contents and row groups. It keeps a few damaged bytes from
// naming a template often enough to exhaust memory. Encode refuses a Spec that exceeds it.
const maxDecoded = 40 << 20

// Blob is the content of saved buffers. Contents with equal bytes share one Blob.
type Blob struct {
	SHA256 [32]byte
	Data   []byte
}

// RowGroup is an encoded row group.
type RowGroup struct {
	SHA256 [32]byte
	Size   int
}

// Sections are a Spec in the form that a container stores.
type Sections struct {
	Graph   []byte // the part that determines the graphs: allocations, modules, kernels, graphs, triggers
	Buffers []byte // contents without their bytes, tensors, measurements of triggers
	Blobs   []Blob // the contents' bytes: each once, in the order in which Buffers names them
	Groups  []RowGroup
	// Group returns the bytes of a row group, in buffer if they fit.
	Group GroupSource
}

// Encode returns both sections and all contents in one piece. Equal Specs give equal bytes.
func Encode(s *Spec) ([]byte, error) {
	sections, err := EncodeDetached(s, nil)
	if err != nil {
		return nil, err
	}
	pb := &graphpb.Spec{Graph: sections.Graph, Buffers: sections.Buffers}
	for i := range sections.Blobs {
		pb.BlobData = append(pb.BlobData, sections.Blobs[i].Data)
	}
	for i := range sections.Groups {
		data, err := sections.Group(i, nil)
		if err != nil {
			return nil, fmt.Errorf("encode graph spec: %w", err)
		}
		pb.GroupData = append(pb.GroupData, data)
	}
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(pb)
	if err != nil {
		return nil, fmt.Errorf("encode graph spec: %w", err)
	}
	return out, nil
}

// EncodeDetached returns the sections separately. The blobs share their Data with s. Row groups go to storage; if it is nil, they
// stay in memory.
func EncodeDetached(s *Spec, storage Storage) (*Sections, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	e := &encoder{pb: &graphpb.GraphSection{}, buffers: &graphpb.BufferSection{}, strings: map[string]uint32{}, blobIDs: map[[32]byte]uint32{}}
	e.text("")
	e.allocations(s)
	e.modules(s.Modules)
	e.kernels(s.Kernels)
	rows, err := e.graphs(s, storage)
	if err != nil {
		return nil, fmt.Errorf("encode graph spec: %w", err)
	}
	e.pb.Version = versionOf(s, rows != nil)
	e.tables(s)
	e.contents(s.Contents)
	e.tensors(s.Tensors)
	e.notes(s.Notes)
	e.triggers(s.Triggers)
	e.exact(s)
	out := &Sections{Blobs: e.blobs}
	if rows != nil {
		out.Group = rows.read
		for _, g := range rows.groups {
			out.Groups = append(out.Groups, RowGroup{g.sha256, g.size})
		}
	}
	var errs [3]error
	out.Graph, errs[0] = proto.MarshalOptions{Deterministic: true}.Marshal(e.pb)
	out.Buffers, errs[1] = proto.MarshalOptions{Deterministic: true}.Marshal(e.buffers)
	if errs[0] == nil && errs[1] == nil {
		// Decode the result, so that Encode refuses a Spec that Decode would refuse as too large.
		_, errs[2] = decode(out.Graph, out.Buffers, func(i int, _ [32]byte, _ uint64) ([]byte, error) { return e.blobs[i].Data, nil }, out.Group)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("encode graph spec: %w", err)
	}
	return out, nil
}

// encoder fills the tables of the format in the order in which a Spec first needs their entries.
type encoder struct {
	pb      *graphpb.GraphSection
	buffers *graphpb.BufferSection
	strings map[string]uint32
	blobs   []Blob
	blobIDs map[[32]byte]uint32
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
		if a.Suballocated {
			live |= 2
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
			DsoOffset: m.DSOOffset, Reload: m.Reload}
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
	for i := range contents {
		c := &contents[i]
		id := e.blob(c.Data)
		pb := &graphpb.Content{Alloc: c.Alloc, Offset: c.Offset, Blob: id, Space: uint32(c.Space)}
		end := uint64(0)
		for _, f := range c.Relocations {
			pb.RelocationGap = append(pb.RelocationGap, uint64(f.Offset)-end)
			pb.RelocationAlloc = append(pb.RelocationAlloc, f.Pointer.Index)
			pb.RelocationOffset = append(pb.RelocationOffset, f.Pointer.Offset)
			end = uint64(f.Offset) + uint64(f.Size())
		}
		pb.RelocationSpace, pb.RelocationMap = relocationKinds(c.Relocations)
		end = 0
		for _, r := range c.Unstable {
			pb.UnstableGap = append(pb.UnstableGap, r.Offset-end)
			pb.UnstableSize = append(pb.UnstableSize, r.Size)
			end = r.Offset + r.Size
		}
		e.buffers.Contents = append(e.buffers.Contents, pb)
	}
}

// graphs writes the common parts of the graphs. It writes the columns of a small set of graphs too; for a large set it returns
// row groups.
func (e *encoder) graphs(s *Spec, storage Storage) (*Rows, error) {
	w := NewWriter(storage)
	w.full = fullGroup
	add := func(_ int, g *Graph) error {
		if s.Rows != nil {
			g = g.clone()
		}
		return w.Add(g)
	}
	if err := s.EachGraph(add); err != nil {
		return nil, err
	}
	written := *s
	if err := w.Finish(&written); err != nil {
		return nil, err
	}
	rows := &w.rows.rowEncoder
	for i := range written.Graphs {
		g, pb := &written.Graphs[i], &graphpb.Graph{}
		if written.Rows == nil {
			template, err := w.tables.template(g)
			if err != nil {
				return nil, fmt.Errorf("graphs[%d]: %w", i, err)
			}
			pb = rows.encode(w.tables.plans[template], g, template, i)
			pb.Template = template
		} else {
			pb.Template = written.Rows.template[i]
		}
		if err := e.graph(g, pb, &e.pb.Graphs); err != nil {
			return nil, err
		}
	}
	for i := range s.Children {
		g := &s.Children[i]
		template, err := w.tables.template(g)
		if err != nil {
			return nil, fmt.Errorf("children[%d]: %w", i, err)
		}
		rows.begin()
		pb := rows.encode(w.tables.plans[template], g, template, 0)
		pb.Template = template
		if err := e.graph(g, pb, &e.pb.Children); err != nil {
			return nil, err
		}
	}
	e.pb.AttrSets, e.pb.Shapes, e.pb.Templates = w.tables.attrPB, w.tables.shapePB, w.tables.templatePB
	e.rows(written.Rows)
	return written.Rows, nil
}

// graph appends a graph whose columns are in pb.
func (e *encoder) graph(g *Graph, pb *graphpb.Graph, to *[][]byte) error {
	pb.Label, pb.Batch, pb.InstantiateFlags = e.text(g.Label), g.Batch, g.InstantiateFlags
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(pb)
	*to = append(*to, data)
	return err
}

// rows writes the table of row groups.
func (e *encoder) rows(r *Rows) {
	if r == nil {
		return
	}
	for i := range r.groups {
		g := &r.groups[i]
		e.pb.GroupGraphs = append(e.pb.GroupGraphs, uint32(g.count))
		e.pb.GroupSize = append(e.pb.GroupSize, uint32(g.size))
		e.pb.GroupSha256 = append(e.pb.GroupSha256, g.sha256[:]...)
	}
	e.pb.Referred = gaps(r.referred)
}

// gaps returns numbers in order, each minus the one before.
func gaps(numbers []uint32) (out []uint32) {
	before := uint32(0)
	for _, n := range numbers {
		out = append(out, n-before)
		before = n
	}
	return out
}

func (e *encoder) tensors(tensors []Tensor) {
	for i := range tensors {
		t := &tensors[i]
		e.buffers.Tensors = append(e.buffers.Tensors, &graphpb.Tensor{Name: t.Name, Role: uint32(t.Role), Dtype: uint32(t.DType),
			Alloc: t.At.Index, Offset: t.At.Offset, Size: t.Size, Shape: t.Shape, Lo: t.Lo, Hi: t.Hi, Distinct: t.Distinct, Graphs: gaps(t.Graphs)})
	}
}

func (e *encoder) notes(notes []Note) {
	for _, n := range notes {
		e.buffers.Notes = append(e.buffers.Notes, &graphpb.Note{Name: n.Name, Value: n.Value})
	}
}

func (e *encoder) triggers(triggers []Trigger) {
	var launches []uint32
	for _, t := range triggers {
		e.pb.Triggers = append(e.pb.Triggers, &graphpb.Trigger{Batch: t.Batch, Kernels: t.Kernels})
		launches = append(launches, t.Launches)
	}
	if slices.ContainsFunc(launches, func(n uint32) bool { return n != 0 }) {
		e.buffers.TriggerLaunches = launches
	}
}
