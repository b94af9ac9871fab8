package graphir

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"medusa/graphir/graphpb"
)

// Decode reads the output of Encode. The result is valid and shares no memory with data.
func Decode(data []byte) (*Spec, error) {
	if err := newBudget().scan(data, map[protowire.Number]int64{blobDataField: 24, groupDataField: 24}, map[protowire.Number]bool{1: true, 2: true}, blobDataField, groupDataField); err != nil {
		return nil, &FormatError{"spec", -1, err}
	}
	pb := &graphpb.Spec{}
	if err := proto.Unmarshal(data, pb); err != nil {
		return nil, &FormatError{"spec", -1, err}
	}
	used := 0
	spec, err := decode(pb.Graph, pb.Buffers, func(i int, _ [32]byte, _ uint64) ([]byte, error) {
		if i >= len(pb.BlobData) {
			return nil, fmt.Errorf("only %d blobs are present", len(pb.BlobData))
		}
		used++
		return pb.BlobData[i], nil
	}, func(i int, buffer []byte) ([]byte, error) {
		if i >= len(pb.GroupData) {
			return nil, fmt.Errorf("only %d row groups are present", len(pb.GroupData))
		}
		return append(buffer, pb.GroupData[i]...), nil
	})
	if err == nil && used != len(pb.BlobData) {
		return nil, &FormatError{"blobs", used, errors.New("no content refers to it")}
	}
	return spec, err
}

// Source provides the bytes that are stored apart from the sections. Their digest and size are checked.
type Source struct {
	// Blob returns the content with this digest, which becomes part of the Spec.
	Blob func(sum [32]byte, size uint64) ([]byte, error)
	// Group returns the row group with this digest, in buffer if it fits. It is called whenever a group is needed, as long as the
	// Spec is used, and by several goroutines at once. The result is used only until the caller's next call with the same buffer.
	Group func(sum [32]byte, size int, buffer []byte) ([]byte, error)
}

// DecodeDetached reads the output of EncodeDetached. Without buffers the Spec has only its graphs. Row groups are read and
// checked later, by cursors and by Validate.
func DecodeDetached(graph, buffers []byte, source Source) (*Spec, error) {
	var spec *Spec
	spec, err := decode(graph, buffers, func(_ int, sum [32]byte, size uint64) ([]byte, error) { return source.Blob(sum, size) },
		func(i int, buffer []byte) ([]byte, error) {
			g := &spec.Rows.groups[i]
			return source.Group(g.sha256, g.size, buffer)
		})
	return spec, err
}

// blobSource returns the i-th blob that a section names.
type blobSource func(i int, sum [32]byte, size uint64) ([]byte, error)

func decode(graph, buffers []byte, blob blobSource, group GroupSource) (*Spec, error) {
	budget := newBudget()
	d := &decoder{pb: &graphpb.GraphSection{}, buffers: &graphpb.BufferSection{}, spec: &Spec{}, budget: budget, group: group}
	if err := budget.scan(graph, graphEntryBytes, graphTexts); err != nil {
		return nil, &FormatError{"graph", -1, err}
	}
	if err := proto.Unmarshal(graph, d.pb); err != nil {
		return nil, &FormatError{"graph", -1, err}
	}
	if d.pb.Version > Version {
		return nil, fmt.Errorf("decode graph spec: %w %d (this one reads up to %d; a newer medusa is needed)",
			ErrVersion, d.pb.Version, Version)
	}
	if d.pb.Version == 0 || len(d.pb.Strings) == 0 || d.pb.Strings[0] != "" {
		return nil, &FormatError{"graph", -1, errors.New("no graph section")}
	}
	if err := budget.scan(buffers, bufferEntryBytes, bufferTexts); err != nil {
		return nil, &FormatError{"buffers", -1, err}
	}
	if err := proto.Unmarshal(buffers, d.buffers); err != nil {
		return nil, &FormatError{"buffers", -1, err}
	}
	for _, step := range []func() error{d.allocations, d.modules, d.kernels, d.graphs, d.tables,
		func() error { return d.contents(blob) }, d.tensors, d.notes, d.triggers, d.region} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := d.spec.validate(); err != nil {
		return nil, &FormatError{"spec", -1, err}
	}
	return d.spec, nil
}

type decoder struct {
	pb      *graphpb.GraphSection
	buffers *graphpb.BufferSection
	spec    *Spec
	budget  *budget
	group   GroupSource
	blank   blanks
}

// table makes room for exactly n entries. An empty table is nil, as in a Spec made by hand.
func table[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

func (d *decoder) text(id uint32) (string, error) {
	if int64(id) >= int64(len(d.pb.Strings)) {
		return "", fmt.Errorf("string %d of %d", id, len(d.pb.Strings))
	}
	return d.pb.Strings[id], nil
}

func (d *decoder) allocations() error {
	pb, count := d.pb, len(d.pb.AllocSize)
	if len(pb.AllocKind) != count || len(pb.AllocOwner) != count || len(pb.AllocLive) != count {
		return &FormatError{"allocations", -1, errColumns}
	}
	if err := d.budget.take(48 * int64(count)); err != nil {
		return &FormatError{"allocations", -1, err}
	}
	if count > 0 {
		d.spec.Allocations = make([]Allocation, count)
	}
	for i := range d.spec.Allocations {
		if pb.AllocLive[i] > 3 {
			return &FormatError{"allocations", i, fmt.Errorf("alloc_live %d", pb.AllocLive[i])}
		}
		d.spec.Allocations[i] = Allocation{Kind: AllocKind(pb.AllocKind[i]), Owner: Owner(pb.AllocOwner[i]),
			Size: pb.AllocSize[i], Live: pb.AllocLive[i]&1 != 0, Suballocated: pb.AllocLive[i]&2 != 0}
	}
	return d.sequence(count)
}

func (d *decoder) sequence(count int) error {
	pb := d.pb
	if len(pb.FreeGap) != len(pb.Freed) {
		return &FormatError{"sequence", -1, errColumns}
	}
	if count+len(pb.Freed) == 0 {
		return nil
	}
	steps := make([]Step, 0, count+len(pb.Freed))
	made := uint32(0)
	for k, gap := range pb.FreeGap {
		if int64(made)+int64(gap) > int64(count) {
			return &FormatError{"sequence", k, fmt.Errorf("%d allocations of %d", int64(made)+int64(gap), count)}
		}
		for range gap {
			steps = append(steps, Step{Alloc: made})
			made++
		}
		steps = append(steps, Step{Free: true, Alloc: pb.Freed[k]})
	}
	for ; int64(made) < int64(count); made++ {
		steps = append(steps, Step{Alloc: made})
	}
	d.spec.Sequence = steps
	return nil
}

func (d *decoder) modules() error {
	d.spec.Modules = table[Module](len(d.pb.Modules))
	for i, pb := range d.pb.Modules {
		m := Module{Kind: ModuleKind(pb.Kind), ImageSize: pb.ImageSize, DSOOffset: pb.DsoOffset, Reload: pb.Reload}
		var errs [3]error
		m.DSO, errs[0] = d.text(pb.Dso)
		m.BuildID, errs[1] = d.text(pb.BuildId)
		errs[2] = d.budget.take(16 * int64(len(pb.Functions)))
		if err := errors.Join(errs[:]...); err != nil {
			return &FormatError{"modules", i, err}
		}
		switch {
		case pb.Kind > math.MaxUint8:
			return &FormatError{"modules", i, fmt.Errorf("kind %d", pb.Kind)}
		case len(pb.ImageSha256) == len(m.ImageSHA256):
			m.ImageSHA256 = [32]byte(pb.ImageSha256)
		case len(pb.ImageSha256) != 0:
			return &FormatError{"modules", i, fmt.Errorf("image_sha256 of %d bytes", len(pb.ImageSha256))}
		}
		m.Functions = table[string](len(pb.Functions))
		id := int32(0)
		for _, delta := range pb.Functions {
			id += delta
			name, err := d.text(uint32(id))
			if err != nil {
				return &FormatError{"modules", i, err}
			}
			m.Functions = append(m.Functions, name)
		}
		d.spec.Modules = append(d.spec.Modules, m)
	}
	return nil
}

func (d *decoder) kernels() error {
	d.spec.Kernels = table[Kernel](len(d.pb.Kernels))
	for i, pb := range d.pb.Kernels {
		name, err := d.text(pb.Name)
		if err == nil && (len(pb.ParamOffset) != len(pb.ParamSize) || len(pb.AttrId) != len(pb.AttrValue)) {
			err = errColumns
		}
		if err != nil {
			return &FormatError{"kernels", i, err}
		}
		k := Kernel{Name: name, Module: pb.Module}
		for p, offset := range pb.ParamOffset {
			k.Params = append(k.Params, Param{Offset: offset, Size: pb.ParamSize[p]})
		}
		for a, id := range pb.AttrId {
			k.Attrs = append(k.Attrs, FuncAttr{ID: id, Value: pb.AttrValue[a]})
		}
		d.spec.Kernels = append(d.spec.Kernels, k)
	}
	return nil
}

func (d *decoder) contents(blob blobSource) error {
	pb := d.buffers
	if len(pb.BlobSha256) != 32*len(pb.BlobSize) {
		return &FormatError{"blobs", -1, errColumns}
	}
	blobs := make([][]byte, len(pb.BlobSize))
	for i, size := range pb.BlobSize {
		data, err := blob(i, [32]byte(pb.BlobSha256[32*i:]), size)
		if err == nil && (uint64(len(data)) != size || sha256.Sum256(data) != [32]byte(pb.BlobSha256[32*i:])) {
			err = errors.New("content does not match its digest")
		}
		if err != nil {
			return &FormatError{"blobs", i, err}
		}
		blobs[i] = data
	}
	used := make([]bool, len(blobs))
	d.spec.Contents = table[Content](len(pb.Contents))
	for i, c := range pb.Contents {
		if len(c.RelocationGap) != len(c.RelocationAlloc) || len(c.RelocationGap) != len(c.RelocationOffset) || len(c.UnstableGap) != len(c.UnstableSize) {
			return &FormatError{"contents", i, errColumns}
		}
		if int64(c.Blob) >= int64(len(blobs)) {
			return &FormatError{"contents", i, fmt.Errorf("blob %d of %d", c.Blob, len(blobs))}
		}
		used[c.Blob] = true
		content, err := readContent(c, blobs[c.Blob])
		if err != nil {
			return &FormatError{"contents", i, err}
		}
		d.spec.Contents = append(d.spec.Contents, content)
	}
	if err := d.images(blobs, used); err != nil {
		return err
	}
	if unused := slices.Index(used, false); unused >= 0 {
		return &FormatError{"blobs", unused, errors.New("no content refers to it")}
	}
	return nil
}

func readContent(pb *graphpb.Content, data []byte) (Content, error) {
	c := Content{Alloc: pb.Alloc, Offset: pb.Offset, Space: Space(pb.Space)}
	if err := kindColumns(len(pb.RelocationGap), pb.RelocationSpace, pb.RelocationMap); err != nil {
		return c, err
	}
	if pb.Space > math.MaxUint8 {
		return c, fmt.Errorf("space %d", pb.Space)
	}
	if len(data) > 0 {
		c.Data = data
	}
	size, end := uint64(len(data)), uint64(0)
	for k, gap := range pb.RelocationGap {
		if gap > size-end || size-end-gap < 8 || end+gap > math.MaxUint32 {
			return c, fmt.Errorf("relocation %d outside of %d bytes", k, size)
		}
		f := Relocation{Offset: uint32(end + gap), Pointer: Pointer{Index: pb.RelocationAlloc[k], Offset: pb.RelocationOffset[k]}}
		if err := relocationKind(&f, k, pb.RelocationSpace, pb.RelocationMap); err != nil {
			return c, err
		}
		if end += gap + uint64(f.Size()); end > size {
			return c, fmt.Errorf("relocation %d outside of %d bytes", k, size)
		}
		c.Relocations = append(c.Relocations, f)
	}
	end = 0
	for k, gap := range pb.UnstableGap {
		if gap > size-end || pb.UnstableSize[k] > size-end-gap {
			return c, fmt.Errorf("unstable range %d outside of %d bytes", k, size)
		}
		c.Unstable = append(c.Unstable, Range{end + gap, pb.UnstableSize[k]})
		end += gap + pb.UnstableSize[k]
	}
	return c, nil
}

func (d *decoder) tensors() error {
	d.spec.Tensors = table[Tensor](len(d.buffers.Tensors))
	for i, pb := range d.buffers.Tensors {
		if pb.Role > math.MaxUint8 || pb.Dtype > math.MaxUint8 {
			return &FormatError{"tensors", i, fmt.Errorf("role %d, type %d", pb.Role, pb.Dtype)}
		}
		d.spec.Tensors = append(d.spec.Tensors, Tensor{Name: pb.Name, Role: Role(pb.Role), DType: DType(pb.Dtype),
			At: Pointer{Index: pb.Alloc, Offset: pb.Offset}, Size: pb.Size, Shape: pb.Shape, Lo: pb.Lo, Hi: pb.Hi, Distinct: pb.Distinct,
			Graphs: fromGaps(pb.Graphs)})
	}
	return nil
}

func (d *decoder) notes() error {
	d.spec.Notes = table[Note](len(d.buffers.Notes))
	for _, pb := range d.buffers.Notes {
		d.spec.Notes = append(d.spec.Notes, Note{pb.Name, pb.Value})
	}
	return nil
}

func (d *decoder) triggers() error {
	d.spec.Triggers = table[Trigger](len(d.pb.Triggers))
	launches := d.buffers.TriggerLaunches
	if len(launches) != 0 && len(launches) != len(d.pb.Triggers) {
		return &FormatError{"triggers", -1, errColumns}
	}
	for i, pb := range d.pb.Triggers {
		t := Trigger{Batch: pb.Batch, Kernels: pb.Kernels}
		if len(launches) != 0 {
			t.Launches = launches[i]
		}
		d.spec.Triggers = append(d.spec.Triggers, t)
	}
	return nil
}
