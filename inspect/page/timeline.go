package page

import (
	"slices"

	"medusa/artifacts"
)

// timeline has a bar for every measured start, all on the scale of the longest.
type timeline struct {
	Rows   []timelineRow
	Stages []legend
	Ticks  []tick
}

type timelineRow struct {
	Mode, Where string
	Total       float64 // seconds
	Spans       []span
}

// span is one stage. Width is its share of the scale.
type span struct {
	Name    string
	Class   int
	Seconds float64
	Width   float64
}

type legend struct {
	Name  string
	Class int
}

type tick struct {
	At    float64 // share of the scale
	Label string
}

// stageClasses is the number of colours on the page. Further stages share them.
const stageClasses = 8

func newTimeline(stages []artifacts.StageTimes) timeline {
	var t timeline
	longest := 0.0
	for _, st := range stages {
		row := timelineRow{Mode: st.Mode, Where: st.Device + ", " + st.Date}
		for _, s := range st.Stages {
			class := slices.IndexFunc(t.Stages, func(l legend) bool { return l.Name == s.Name })
			if class < 0 {
				class = len(t.Stages)
				t.Stages = append(t.Stages, legend{s.Name, class % stageClasses})
			}
			row.Spans = append(row.Spans, span{Name: s.Name, Class: class % stageClasses, Seconds: s.Seconds})
			row.Total += s.Seconds
		}
		longest = max(longest, row.Total)
		t.Rows = append(t.Rows, row)
	}
	if longest == 0 {
		return t
	}
	for i := range t.Rows {
		for k := range t.Rows[i].Spans {
			s := &t.Rows[i].Spans[k]
			s.Width = s.Seconds / longest
		}
	}
	step := round(longest / 5)
	for k := 0; float64(k)*step <= longest; k++ {
		label := "0"
		if k > 0 {
			label = seconds(float64(k) * step)
		}
		t.Ticks = append(t.Ticks, tick{float64(k) * step / longest, label})
	}
	return t
}

// total returns the sum of the stages of the first start in a mode, or 0 if there is none.
func (t *timeline) total(mode string) float64 {
	for _, row := range t.Rows {
		if row.Mode == mode {
			return row.Total
		}
	}
	return 0
}

// round returns the next number of the form 1, 2 or 5 times a power of ten.
func round(v float64) float64 {
	unit := 1.0
	for unit*10 <= v {
		unit *= 10
	}
	for unit > v {
		unit /= 10
	}
	for _, f := range []float64{1, 2, 5} {
		if unit*f >= v {
			return unit * f
		}
	}
	return unit * 10
}
