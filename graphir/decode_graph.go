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
	if d.pb.Version >= 3 && len(d.pb.GroupGraphs) > 0 {
		err = d.rows(plans)
	} else {
		err = d.columns(plans)
	}
	if err != nil {
		return err
	}
	return d.children(plans)
}

// columns reads graphs that are not in row groups.
func (d *decoder) columns(plans []*plan) error {
	rows := make([]row, len(d.pb.Graphs))
	lastUse := make([]int, len(rows)) // of each graph: the last row that needs its columns, as itself or as a base
	for i, data := range d.pb.Graphs {
		var err error
		if rows[i], err = readRow(data); err != nil {
			return &FormatError{"graphs", i, err}
		}
		lastUse[i] = i
		if base := int64(rows[i].base) - 1; base >= 0 && base < int64(i) {
			lastUse[base] = i
		}
	}
	cols := make([]*columns, len(rows))
	d.spec.Graphs = table[Graph](len(rows))
	for i := range rows {
		g, err := d.head(&rows[i], plans)
		if err == nil {
			cols[i], err = d.values(i, rows, plans, cols, lastUse)
		}
		if err == nil {
			p := plans[rows[i].template]
			g.Edges = slices.Clone(p.edges)
			g.Nodes, err = p.build(cols[i], newBodies(len(p.nodes), p.size))
		}
		if err != nil {
			return &FormatError{"graphs", i, err}
		}
		// mutant: columns that another graph is predicted by
		if lastUse[i] == i {
			d.blank, cols[i] = append(d.blank, cols[i]), nil
		}
		d.spec.Graphs = append(d.spec.Graphs, g)
	}
	return nil
}

// head reads a row without its columns.
func (d *decoder) head(r *row, plans []*plan) (Graph, error) {
	label, err := d.text(r.label)
	if err == nil && int64(r.template) >= int64(len(plans)) {
		err = fmt.Errorf("template %d of %d", r.template, len(plans))
	}
	return Graph{Label: label, Batch: r.batch, InstantiateFlags: r.flags}, err
}

func (d *decoder) children(plans []*plan) error {
	d.spec.Children = table[Graph](len(d.pb.Children))
	for i, data := range d.pb.Children {
		r, err := readRow(data)
		if err == nil && r.base != 0 {
			err = errors.New("a child graph with a base")
		}
		var g Graph
		if err == nil {
			g, err = d.head(&r, plans)
		}
		if err == nil {
			p := plans[r.template]
			var cols *columns
			if cols, err = d.values(0, []row{r}, plans, nil, nil); err == nil {
				g.Edges = slices.Clone(p.edges)
				g.Nodes, err = p.build(cols, newBodies(len(p.nodes), p.size))
			}
		}
		if err != nil {
			return &FormatError{"children", i, err}
		}
		d.spec.Children = append(d.spec.Children, g)
	}
	return nil
}

// values returns the columns of the i-th row: the prediction plus the changes.
func (d *decoder) values(i int, rows []row, plans []*plan, cols []*columns, lastUse []int) (*columns, error) {
	r := &rows[i]
	p := plans[r.template]
	if err := d.budget.take(p.bytes); err != nil {
		return nil, err
	}
	if r.base == 0 {
		c := d.blank.take(p)
		// mutant: columns that held another graph
		c.clear()
		if err := c.applyAll(r); err != nil {
			return nil, err
		}
		c.accumulate(p)
		return c, nil
	}
	base := int64(r.base) - 1
	if base >= int64(i) {
		return nil, fmt.Errorf("base %d is not an earlier graph", base)
	}
	if rows[base].template != r.template {
		return nil, errors.New("base is of another template")
	}
	c := cols[base]
	if lastUse[base] == i { // its nodes are built, and it is not the base of a later graph
		cols[base] = nil
	} else {
		c = d.blank.take(p)
		c.copyFrom(cols[base])
	}
	return c, c.applyAll(r)
}

// rows reads the heads of graphs whose columns are in row groups.
func (d *decoder) rows(plans []*plan) error {
	pb := d.pb
	if len(pb.GroupSize) != len(pb.GroupGraphs) || len(pb.GroupSha256) != 32*len(pb.GroupGraphs) {
		return &FormatError{"groups", -1, errColumns}
	}
	if err := d.budget.take(maxGroup + maxGroupEncoded); err != nil {
		return &FormatError{"groups", -1, err}
	}
	out := &Rows{plans: plans, read: d.group, referred: fromGaps(pb.Referred)}
	d.spec.Rows, d.spec.Graphs = out, table[Graph](len(pb.Graphs))
	for i, data := range pb.Graphs {
		r, err := readRow(data)
		var g Graph
		if err == nil {
			g, err = d.head(&r, plans)
		}
		if err != nil {
			return &FormatError{"graphs", i, err}
		}
		d.spec.Graphs, out.template = append(d.spec.Graphs, g), append(out.template, r.template)
	}
	first := 0
	for i, count := range pb.GroupGraphs {
		if count == 0 || int64(count) > int64(len(pb.Graphs)-first) || pb.GroupSize[i] > maxGroupEncoded {
			return &FormatError{"groups", i, fmt.Errorf("%d of %d graphs in %d bytes", count, len(pb.Graphs)-first, pb.GroupSize[i])}
		}
		out.groups = append(out.groups, rowGroup{first, int(count), int(pb.GroupSize[i]), [32]byte(pb.GroupSha256[32*i:])})
		first += int(count)
	}
	if first != len(pb.Graphs) {
		return &FormatError{"groups", -1, fmt.Errorf("they have %d of %d graphs", first, len(pb.Graphs))}
	}
	if _, _, _, _, err := out.needs(); err != nil {
		return &FormatError{"groups", -1, err}
	}
	return nil
}

// fromGaps undoes gaps, in place.
func fromGaps(numbers []uint32) []uint32 {
	for i := 1; i < len(numbers); i++ {
		numbers[i] += numbers[i-1]
	}
	return numbers
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
		attrs[at-1].Base = &Pointer{Index: pb.BaseAlloc[k], Offset: pb.BaseOffset[k], Space: Space(pb.BaseSpace[k])}
	}
	return nil
}
