package graphir

import (
	"encoding/binary"
	"fmt"

	"medusa/graphir/graphpb"
)

// tables interns the values that graphs share, in the order of first use.
type tables struct {
	attrSets, shapeIDs, templates map[string]uint32
	attrs                         [][]NodeAttr
	shapes                        []*shape
	plans                         []*plan
	attrPB                        []*graphpb.AttrSet
	shapePB                       []*graphpb.Shape
	templatePB                    []*graphpb.Template
	key                           []byte // reused for every look-up
}

func newTables() *tables {
	return &tables{attrSets: map[string]uint32{}, shapeIDs: map[string]uint32{}, templates: map[string]uint32{}}
}

// template returns the number of the graph's template: the part that it shares with other graphs.
func (e *tables) template(g *Graph) (uint32, error) {
	shapes := make([]uint32, len(g.Nodes))
	for i := range g.Nodes {
		var err error
		if shapes[i], err = e.shape(&g.Nodes[i]); err != nil {
			return 0, fmt.Errorf("nodes[%d]: %w", i, err)
		}
	}
	name := key(e.key[:0], uint32(len(shapes)))
	name = key(name, shapes...)
	for _, edge := range g.Edges {
		name = key(name, edge.From, edge.To, edgeData(edge))
	}
	e.key = name
	id, known := e.templates[string(name)]
	if known {
		return id, nil
	}
	pb := &graphpb.Template{Nodes: shapes}
	from, plain := uint32(0), true
	for _, edge := range g.Edges {
		plain = plain && edgeData(edge) == 0
		pb.EdgeFrom = append(pb.EdgeFrom, int32(edge.From-from))
		pb.EdgeTo = append(pb.EdgeTo, int32(edge.To-edge.From))
		pb.EdgeData = append(pb.EdgeData, edgeData(edge))
		from = edge.From
	}
	if plain {
		pb.EdgeData = nil
	}
	p, err := newPlan(pb, e.shapes)
	if err != nil {
		return 0, err
	}
	id = uint32(len(e.plans))
	e.templates[string(name)] = id
	e.plans = append(e.plans, p)
	e.templatePB = append(e.templatePB, pb)
	return id, nil
}

func edgeData(e Edge) uint32 {
	return uint32(e.FromPort) | uint32(e.ToPort)<<8 | uint32(e.Type)<<16
}

func (e *tables) shape(n *Node) (uint32, error) {
	params := n.Params
	name := key(e.key[:0], uint32(n.Type), n.Target)
	if params != nil {
		name = params.key(e, name)
	}
	e.key = name
	id, known := e.shapeIDs[string(name)]
	if known {
		return id, nil
	}
	pb := &graphpb.Shape{Type: uint32(n.Type), Target: n.Target}
	if params != nil {
		params.encode(e, pb)
	}
	s, err := newShape(pb, e.attrs)
	if err != nil {
		return 0, err
	}
	id = uint32(len(e.shapes))
	e.shapeIDs[string(name)] = id
	e.shapes = append(e.shapes, s)
	e.shapePB = append(e.shapePB, pb)
	return id, nil
}

func (e *tables) attrSet(attrs []NodeAttr) uint32 {
	if len(attrs) == 0 {
		return 0
	}
	pb := &graphpb.AttrSet{}
	for i := range attrs {
		pb.Id = append(pb.Id, attrs[i].ID)
		pb.Value = append(pb.Value, attrs[i].Value[:]...)
		if base := attrs[i].Base; base != nil {
			pb.Base = append(pb.Base, uint32(i)+1)
			pb.BaseSpace = append(pb.BaseSpace, uint32(base.Space))
			pb.BaseAlloc = append(pb.BaseAlloc, base.Index)
			pb.BaseOffset = append(pb.BaseOffset, base.Offset)
		}
	}
	name := string(key(nil, pb.Id...)) + string(pb.Value) + fmt.Sprint(pb.Base, pb.BaseSpace, pb.BaseAlloc, pb.BaseOffset)
	id, known := e.attrSets[name]
	if !known {
		e.attrs = append(e.attrs, attrs)
		e.attrPB = append(e.attrPB, pb)
		id = uint32(len(e.attrs))
		e.attrSets[name] = id
	}
	return id
}

// key appends numbers to a map key.
func key(to []byte, numbers ...uint32) []byte {
	for _, n := range numbers {
		to = binary.AppendUvarint(to, uint64(n))
	}
	return to
}
