package mutate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"medusa/artifacts/artifactpb"
	"medusa/graphir/graphpb"
)

// Artifact is an artifact taken apart. Mutant changes a copy.
type Artifact struct {
	container *container
	ranks     []rank
	blobs     [][]byte
	groups    []*group
	layers    []layer
	other     []section // of kinds without a structure
}

// rank holds one worker's messages; byte strings of the graph section are taken apart too.
type rank struct {
	manifest         *artifactpb.Manifest
	graph            *graphpb.GraphSection
	buffers          *graphpb.BufferSection
	graphs, children []*graphpb.Graph
}

// group is a row group and the graphs in it.
type group struct {
	before [32]byte // its digest as graph sections name it
	graphs []*graphpb.Graph
}

// layer is a bundled directory as packed.
type layer struct {
	before [32]byte
	data   []byte
}

// Open takes the bytes of an artifact apart.
func Open(file []byte) (*Artifact, error) {
	c, err := openContainer(file)
	if err != nil {
		return nil, err
	}
	a := &Artifact{container: c}
	count := map[uint16]int{}
	for _, s := range c.sections {
		i := count[s.kind]
		count[s.kind]++
		if s.kind <= kindBuffers && i == len(a.ranks) {
			a.ranks = append(a.ranks, rank{})
		}
		switch s.kind {
		case kindManifest:
			a.ranks[i].manifest = &artifactpb.Manifest{}
			err = proto.Unmarshal(s.data, a.ranks[i].manifest)
		case kindGraph:
			err = a.ranks[i].openGraph(s.data)
		case kindBuffers:
			a.ranks[i].buffers = &graphpb.BufferSection{}
			err = proto.Unmarshal(s.data, a.ranks[i].buffers)
		case kindBlob:
			a.blobs = append(a.blobs, s.data)
		case kindGroup:
			err = a.openGroup(s.data)
		case kindLayer:
			a.layers = append(a.layers, layer{sha256.Sum256(s.data), s.data})
		default:
			a.other = append(a.other, s)
		}
		if err != nil {
			return nil, fmt.Errorf("open section of kind %d: %w", s.kind, err)
		}
	}
	for i, r := range a.ranks {
		if r.manifest == nil || r.graph == nil || r.buffers == nil {
			return nil, fmt.Errorf("open artifact: rank %d lacks a section", i)
		}
	}
	return a, nil
}

func graphsOf(data [][]byte) ([]*graphpb.Graph, error) {
	var out []*graphpb.Graph
	for _, d := range data {
		g := &graphpb.Graph{}
		if err := proto.Unmarshal(d, g); err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

func (k *rank) openGraph(data []byte) (err error) {
	k.graph = &graphpb.GraphSection{}
	if err := proto.Unmarshal(data, k.graph); err != nil {
		return err
	}
	if k.graphs, err = graphsOf(k.graph.Graphs); err != nil {
		return err
	}
	k.children, err = graphsOf(k.graph.Children)
	return err
}

func (a *Artifact) openGroup(data []byte) error {
	pb := &graphpb.RowGroup{}
	if err := proto.Unmarshal(data, pb); err != nil {
		return err
	}
	graphs, err := graphsOf(pb.Graphs)
	a.groups = append(a.groups, &group{sha256.Sum256(data), graphs})
	return err
}

// clone returns a copy whose messages may be changed.
func (a *Artifact) clone() *Artifact {
	c := *a
	graphs := func(in []*graphpb.Graph) (out []*graphpb.Graph) {
		for _, g := range in {
			out = append(out, proto.CloneOf(g))
		}
		return out
	}
	c.ranks, c.groups = slices.Clone(a.ranks), slices.Clone(a.groups)
	for i, k := range c.ranks {
		c.ranks[i] = rank{proto.CloneOf(k.manifest), proto.CloneOf(k.graph), proto.CloneOf(k.buffers), graphs(k.graphs), graphs(k.children)}
	}
	for i, g := range c.groups {
		c.groups[i] = &group{g.before, graphs(g.graphs)}
	}
	c.blobs, c.layers, c.other = slices.Clone(a.blobs), slices.Clone(a.layers), slices.Clone(a.other)
	return &c
}

// bytes puts the artifact together again. Sizes and digests in messages follow their subjects, unless a mutator has set
// other values on purpose.
func (a *Artifact) bytes() ([]byte, error) {
	out := &container{version: a.container.version}
	marshal := proto.MarshalOptions{Deterministic: true}
	renamed := map[[32]byte][]byte{} // row groups by the digest that they had
	for _, g := range a.groups {
		data, err := marshal.Marshal(&graphpb.RowGroup{Graphs: bytesOf(g.graphs)})
		if err != nil {
			return nil, err
		}
		renamed[g.before] = data
	}
	for _, k := range a.ranks {
		k.graph.Graphs, k.graph.Children = bytesOf(k.graphs), bytesOf(k.children)
		for i := 0; 32*(i+1) <= len(k.graph.GroupSha256) && i < len(k.graph.GroupSize); i++ {
			if data, found := renamed[[32]byte(k.graph.GroupSha256[32*i:])]; found {
				sum := sha256.Sum256(data)
				copy(k.graph.GroupSha256[32*i:], sum[:])
				k.graph.GroupSize[i] = uint32(len(data))
			}
		}
		for _, l := range k.manifest.Layers {
			for _, have := range a.layers {
				if bytes.Equal(l.Sha256, have.before[:]) {
					sum := sha256.Sum256(have.data)
					l.Sha256, l.PackedSize = sum[:], uint64(len(have.data))
				}
			}
		}
		for kind, m := range []proto.Message{kindManifest: k.manifest, kindGraph: k.graph, kindBuffers: k.buffers} {
			if m == nil {
				continue
			}
			data, err := marshal.Marshal(m)
			if err != nil {
				return nil, err
			}
			out.sections = append(out.sections, section{kind: uint16(kind), data: data})
		}
	}
	for _, b := range a.blobs {
		out.sections = append(out.sections, section{kind: kindBlob, data: b})
	}
	for _, g := range a.groups {
		out.sections = append(out.sections, section{kind: kindGroup, data: renamed[g.before]})
	}
	for _, l := range a.layers {
		out.sections = append(out.sections, section{kind: kindLayer, data: l.data})
	}
	out.sections = append(out.sections, a.other...)
	return out.seal(), nil
}

func bytesOf(graphs []*graphpb.Graph) [][]byte {
	var out [][]byte
	for _, g := range graphs {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(g)
		if err != nil { // a text that is not UTF-8, which change never makes
			panic(err)
		}
		out = append(out, data)
	}
	return out
}

// Mutant returns the bytes of a changed copy and the changes in words. All paths of bundled directories lead below outside,
// because a mutant may be restored as root.
func (a *Artifact) Mutant(r *rand.Rand, outside string) (file []byte, what string, err error) {
	c := a.clone()
	var said []string
	n := 1
	for n < 4 && r.IntN(2) == 0 {
		n++
	}
	for range n {
		if r.IntN(4) == 0 {
			d := directed[r.IntN(len(directed))]
			if text := d(c, r, outside); text != "" {
				said = append(said, text)
				continue
			}
		}
		said = append(said, c.anyEdit(r))
	}
	file, err = c.bytes()
	return file, strings.Join(said, "; "), err
}

// anyEdit makes one change of any field of a message, picked so that small messages get their share.
func (a *Artifact) anyEdit(r *rand.Rand) string {
	k := &a.ranks[r.IntN(len(a.ranks))]
	var messages []protoreflect.Message
	add := func(m proto.Message) { messages = append(messages, m.ProtoReflect()) }
	for range 3 {
		add(k.graph)
	}
	add(k.manifest)
	add(k.buffers)
	add(k.buffers)
	for _, graphs := range [][]*graphpb.Graph{k.graphs, k.children} {
		for _, g := range graphs {
			add(g)
		}
	}
	for _, g := range a.groups {
		for _, row := range g.graphs {
			add(row)
		}
	}
	if blobs := len(a.blobs); blobs > 0 && r.IntN(10) == 0 {
		return a.changeBlob(r.IntN(blobs), r)
	}
	m := messages[r.IntN(len(messages))]
	list := edits(m, string(m.Descriptor().Name()), leftAlone, nil)
	if len(list) == 0 {
		return "nothing"
	}
	e := list[r.IntN(len(list))]
	return e.what + " " + e.do(r)
}

// leftAlone are fields that lead to files of this machine, which only directed mutators set, and bytes that are taken apart.
func leftAlone(f protoreflect.FieldDescriptor) bool {
	switch f.FullName() {
	case "medusa.artifacts.v1.Layer.path", "medusa.artifacts.v1.Layer.name",
		"medusa.graphir.v1.GraphSection.graphs", "medusa.graphir.v1.GraphSection.children":
		return true
	}
	return false
}

// changeBlob changes a saved content, and the digest that the buffers know it by.
func (a *Artifact) changeBlob(i int, r *rand.Rand) string {
	before := sha256.Sum256(a.blobs[i])
	a.blobs[i] = changeBytes(a.blobs[i], r)
	after := sha256.Sum256(a.blobs[i])
	for _, k := range a.ranks {
		for at := 0; at+32 <= len(k.buffers.BlobSha256); at += 32 {
			if j := at / 32; bytes.Equal(k.buffers.BlobSha256[at:at+32], before[:]) {
				copy(k.buffers.BlobSha256[at:], after[:])
				if j < len(k.buffers.BlobSize) {
					k.buffers.BlobSize[j] = uint64(len(a.blobs[i]))
				}
			}
		}
	}
	return fmt.Sprintf("blob %d changed", i)
}
