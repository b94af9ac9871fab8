package graphir

import (
	"fmt"

	"medusa/graphir/graphpb"
)

// graphEncoder interns what graphs share.
type graphEncoder struct {
	*encoder
	attrSets  map[string]uint32
	attrs     [][]NodeAttr // decoded attr_sets
	shapeIDs  map[string]uint32
	shapes    []*shape
	templates map[string]uint32
	latest    []int // the latest graph of each template
}

func (e *encoder) graphs(s *Spec) error {
	ge := &graphEncoder{encoder: e, attrSets: map[string]uint32{}, shapeIDs: map[string]uint32{}, templates: map[string]uint32{}}
	if err := ge.topLevel(s.Graphs); err != nil {
		return err
	}
	for i := range s.Children {
		pb, p, err := ge.graph(&s.Children[i])
		if err != nil {
			return fmt.Errorf("children[%d]: %w", i, err)
		}
		p.collect(s.Children[i].Nodes).alone(p, pb)
		e.pb.Children = append(e.pb.Children, pb)
	}
	return nil
}

// graph writes all but the columns.
func (e *graphEncoder) graph(g *Graph) (*graphpb.Graph, *plan, error) {
	template, err := e.template(g)
	if err != nil {
		return nil, nil, err
	}
	return &graphpb.Graph{Label: e.text(g.Label), Batch: g.Batch, InstantiateFlags: g.InstantiateFlags, Template: template}, e.plans[template], nil
}

func (ge *graphEncoder) topLevel(graphs []Graph) error {
	cols := make([]*columns, len(graphs))
	for i := range graphs {
		pb, p, err := ge.graph(&graphs[i])
		if err != nil {
			return fmt.Errorf("graphs[%d]: %w", i, err)
		}
		cols[i] = p.collect(graphs[i].Nodes)
		if base := ge.latest[pb.Template]; base >= 0 {
			pb.Base = uint32(base) + 1
			cols[i].changesAgainst(cols[base], pb)
		} else {
			cols[i].alone(p, pb)
		}
		ge.latest[pb.Template] = i
		ge.pb.Graphs = append(ge.pb.Graphs, pb)
	}
	return nil
}

func (e *graphEncoder) template(g *Graph) (uint32, error) {
	pb := &graphpb.Template{}
	for i := range g.Nodes {
		id, err := e.shape(&g.Nodes[i])
		if err != nil {
			return 0, fmt.Errorf("nodes[%d]: %w", i, err)
		}
		pb.Nodes = append(pb.Nodes, id)
	}
	ids := append([]uint32{uint32(len(g.Nodes))}, pb.Nodes...)
	from, plain := uint32(0), true
	for _, edge := range g.Edges {
		data := uint32(edge.FromPort) | uint32(edge.ToPort)<<8 | uint32(edge.Type)<<16
		plain = plain && data == 0
		pb.EdgeFrom = append(pb.EdgeFrom, int32(edge.From-from))
		pb.EdgeTo = append(pb.EdgeTo, int32(edge.To-edge.From))
		pb.EdgeData = append(pb.EdgeData, data)
		ids = append(ids, edge.From, edge.To, data)
		from = edge.From
	}
	if plain {
		pb.EdgeData = nil
	}
	name := key(ids)
	id, known := e.templates[name]
	if !known {
		p, err := newPlan(pb, e.shapes)
		if err != nil {
			return 0, err
		}
		id = uint32(len(e.plans))
		e.templates[name] = id
		e.plans = append(e.plans, p)
		e.latest = append(e.latest, -1)
		e.pb.Templates = append(e.pb.Templates, pb)
	}
	return id, nil
}

func (e *graphEncoder) shape(n *Node) (uint32, error) {
	pb := &graphpb.Shape{Type: uint32(n.Type), Target: n.Target}
	if n.Memcpy != nil {
		pb.SrcSpace, pb.DstSpace = uint32(n.Memcpy.Src.Pointer.Space), uint32(n.Memcpy.Dst.Pointer.Space)
	}
	if n.Memset != nil {
		pb.DstSpace = uint32(n.Memset.Dst.Space)
	}
	ids := []uint32{uint32(n.Type), n.Target, pb.SrcSpace, pb.DstSpace}
	if k := n.Kernel; k != nil {
		pb.Kernel, pb.ParamsSize, pb.AttrSet = k.Kernel, uint32(len(k.Params)), e.attrSet(k.Attrs)
		ids = append(ids, pb.Kernel, pb.ParamsSize, pb.AttrSet)
		end := uint32(0)
		for _, f := range k.Fixups {
			pb.FixupGap = append(pb.FixupGap, f.Offset-end)
			ids = append(ids, f.Offset, uint32(f.Pointer.Space), f.TensorMap)
			end = f.Offset + f.Size()
		}
		pb.FixupSpace, pb.FixupMap = fixupKinds(k.Fixups)
	}
	name := key(ids)
	id, known := e.shapeIDs[name]
	if !known {
		s, err := newShape(pb, e.attrs)
		if err != nil {
			return 0, err
		}
		id = uint32(len(e.shapes))
		e.shapeIDs[name] = id
		e.shapes = append(e.shapes, s)
		e.pb.Shapes = append(e.pb.Shapes, pb)
	}
	return id, nil
}

func (e *graphEncoder) attrSet(attrs []NodeAttr) uint32 {
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
			pb.BaseAlloc = append(pb.BaseAlloc, base.Alloc)
			pb.BaseOffset = append(pb.BaseOffset, base.Offset)
		}
	}
	name := key(pb.Id) + string(pb.Value) + fmt.Sprint(pb.Base, pb.BaseSpace, pb.BaseAlloc, pb.BaseOffset)
	id, known := e.attrSets[name]
	if !known {
		e.attrs = append(e.attrs, attrs)
		e.pb.AttrSets = append(e.pb.AttrSets, pb)
		id = uint32(len(e.attrs))
		e.attrSets[name] = id
	}
	return id
}
