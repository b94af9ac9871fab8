package graphir

import (
	"errors"
	"fmt"
	"slices"

	"medusa/graphir/graphpb"
)

func (d *decoder) graphs() error {
	plans, err := d.plans()
	if err != nil {
		return err
	}
	cols := make([]*columns, len(d.pb.Graphs))
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
	return nil
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
	c := newColumns(p.size)
	cols[i] = c
	if pb.Base == 0 {
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
	c.copyFrom(cols[base])
	return c.applyAll(pb)
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
