package graphir

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"medusa/graphir/graphpb"
)

func (d *decoder) graphs() error {
	plans, err := d.plans()
	if err != nil {
		return err
	}
	cols := make([]*columns, len(d.pb.Graphs))
	d.lastUse = make([]int, len(d.pb.Graphs))
	for i, pb := range d.pb.Graphs {
		if base := int64(pb.Base) - 1; base >= 0 && base < int64(i) {
			d.lastUse[base] = i
		}
	}
	d.spec.Graphs = table[Graph](len(d.pb.Graphs))
	for i, pb := range d.pb.Graphs {
		label, err := d.text(pb.Label)
		if err == nil {
			err = d.columns(i, pb, plans, cols)
		}
		var nodes []Node
		if err == nil {
			nodes, err = plans[pb.Template].build(cols[i])
		}
		if err != nil {
			return &FormatError{"graphs", i, err}
		}
		d.spec.Graphs = append(d.spec.Graphs, Graph{Label: label, Batch: pb.Batch, InstantiateFlags: pb.InstantiateFlags,
			Nodes: nodes, Edges: slices.Clone(plans[pb.Template].edges)})
	}
	return d.children(plans)
}

func (d *decoder) children(plans []*plan) error {
	d.spec.Children = table[Graph](len(d.pb.Children))
	for i, pb := range d.pb.Children {
		label, err := d.text(pb.Label)
		if err == nil && pb.Base != 0 {
			err = errors.New("a child graph with a base")
		}
		var nodes []Node
		if err == nil {
			nodes, err = d.alone(pb, plans)
		}
		if err != nil {
			return &FormatError{"children", i, err}
		}
		d.spec.Children = append(d.spec.Children, Graph{Label: label, Batch: pb.Batch, InstantiateFlags: pb.InstantiateFlags,
			Nodes: nodes, Edges: slices.Clone(plans[pb.Template].edges)})
	}
	return nil
}

// alone builds the nodes of a graph without a base.
func (d *decoder) alone(pb *graphpb.Graph, plans []*plan) ([]Node, error) {
	cols := make([]*columns, 1)
	if err := d.columns(0, pb, plans, cols); err != nil {
		return nil, err
	}
	return plans[pb.Template].build(cols[0])
}

// columns fills cols[i]: prediction first, then the changes.
func (d *decoder) columns(i int, pb *graphpb.Graph, plans []*plan, cols []*columns) error {
	if int64(pb.Template) >= int64(len(plans)) {
		return fmt.Errorf("template %d of %d", pb.Template, len(plans))
	}
	p := plans[pb.Template]
	if err := d.budget.take(p.bytes); err != nil {
		return err
	}
	if pb.Base == 0 {
		c := newColumns(p.size)
		cols[i] = c
		if err := c.applyAll(pb); err != nil {
			return err
		}
		c.accumulate(p)
		return nil
	}
	base := int64(pb.Base) - 1
	if base >= int64(i) {
		return fmt.Errorf("base %d is not an earlier graph", base)
	}
	if d.pb.Graphs[base].Template != pb.Template {
		return errors.New("base is of another template")
	}
	if d.lastUse[base] == i { // its nodes are built, and nobody else is predicted by it
		cols[i], cols[base] = cols[base], nil
	} else {
		cols[i] = newColumns(p.size)
		cols[i].copyFrom(cols[base])
	}
	return cols[i].applyAll(pb)
}

func (d *decoder) plans() ([]*plan, error) {
	attrSets := make([][]NodeAttr, len(d.pb.AttrSets))
	for i, pb := range d.pb.AttrSets {
		if len(pb.Value) != 64*len(pb.Id) {
			return nil, &FormatError{"attr_sets", i, errColumns}
		}
		for k, id := range pb.Id {
			attrSets[i] = append(attrSets[i], NodeAttr{ID: id, Value: [64]byte(pb.Value[64*k:])})
		}
		if err := readBases(pb, attrSets[i]); err != nil {
			return nil, &FormatError{"attr_sets", i, err}
		}
	}
	shapes := make([]*shape, len(d.pb.Shapes))
	for i, pb := range d.pb.Shapes {
		var err error
		if shapes[i], err = newShape(pb, attrSets); err != nil {
			return nil, &FormatError{"shapes", i, err}
		}
	}
	plans := make([]*plan, len(d.pb.Templates))
	for i, pb := range d.pb.Templates {
		err := d.budget.take(80 * int64(len(pb.Nodes)))
		if err == nil {
			plans[i], err = newPlan(pb, shapes)
		}
		if err != nil {
			return nil, &FormatError{"templates", i, err}
		}
	}
	return plans, nil
}

func readBases(pb *graphpb.AttrSet, attrs []NodeAttr) error {
	if len(pb.Base) != len(pb.BaseSpace) || len(pb.Base) != len(pb.BaseAlloc) || len(pb.Base) != len(pb.BaseOffset) {
		return errColumns
	}
	for k, at := range pb.Base {
		if at == 0 || int64(at) > int64(len(attrs)) || pb.BaseSpace[k] > math.MaxUint8 {
			return fmt.Errorf("base %d of attribute %d in space %d", k, at, pb.BaseSpace[k])
		}
		attrs[at-1].Base = &Pointer{Alloc: pb.BaseAlloc[k], Offset: pb.BaseOffset[k], Space: Space(pb.BaseSpace[k])}
	}
	return nil
}
