package simulate

import (
	"fmt"
	"math"
	"strings"
)

// judge fills in the finding from the metric's values, per variant and seed.
func (f Figure) judge(out *Finding, values, rivals [][]float64) {
	switch f.Compare {
	case "change":
		e := estimate(paired(values, func(a, b float64) float64 { return (b/a - 1) * 100 }))
		out.Ours, out.Published, out.Verdict = e.text("%+.1f")+" %", f.target("%+.4g %%"), f.place(e)
	case "value":
		unit := ""
		format, target := "%.4g", "%.4g"
		if f.isShare() {
			format, target, unit = "%.1f", "%.4g %%", " %"
		}
		e := estimate(values[0])
		out.Ours, out.Published, out.Verdict = e.text(format)+unit, f.target(target), f.place(e)
		for i, rival := range rivals {
			e := estimate(rival)
			out.Ours += fmt.Sprintf("; %s %s", f.Fails[i], e.text(format)+unit)
			if f.place(e) != Outside {
				out.Verdict = Outside
			}
		}
	case "ratio":
		e := estimate(paired(values, func(a, b float64) float64 { return a / b }))
		out.Ours, out.Published, out.Verdict = e.text("%.2f")+"×", f.target("%.4g×"), f.place(e)
	case "order":
		f.judgeOrder(out, values)
	}
}

// judgeOrder judges the differences between neighbours.
func (f Figure) judgeOrder(out *Finding, values [][]float64) {
	sign := " < "
	if f.OrEqual {
		sign = " ≤ "
	}
	out.Published, out.Verdict = strings.Join(f.Variants, sign), Within
	var ours []string
	for i, v := range values {
		ours = append(ours, f.Variants[i]+" "+estimate(v).text("%.3g"))
		if i == 0 {
			continue
		}
		step := estimate(paired(values[i-1:i+1], func(a, b float64) float64 { return b - a }))
		low, high := step.Mean-step.Half, step.Mean+step.Half
		switch {
		case low > 0 || (low == 0 && f.OrEqual):
		case high < 0 || (high == 0 && !f.OrEqual):
			out.Verdict = Outside
		case out.Verdict == Within:
			out.Verdict = Undecided
		}
	}
	out.Ours = strings.Join(ours, ", ")
}

// paired combines the values of two variants seed by seed.
func paired(values [][]float64, combine func(a, b float64) float64) []float64 {
	out := make([]float64, len(values[0]))
	for k := range out {
		out[k] = combine(values[0][k], values[1][k])
	}
	return out
}

// place compares an interval with the tolerance.
func (f Figure) place(e Estimate) Verdict {
	low, high := math.Inf(-1), math.Inf(1)
	if f.Published != nil {
		points := 5.0
		if f.Points != nil {
			points = *f.Points
		}
		low, high = *f.Published-points, *f.Published+points
	}
	if f.Least != nil {
		low = math.Max(low, *f.Least)
	}
	if f.Most != nil {
		high = math.Min(high, *f.Most)
	}
	switch {
	case e.Mean-e.Half >= low && e.Mean+e.Half <= high:
		return Within
	case e.Mean+e.Half < low || e.Mean-e.Half > high:
		return Outside
	}
	return Undecided
}

// isShare reports whether the metric is a share, which figures give in percent.
func (f Figure) isShare() bool {
	name, _, _ := strings.Cut(f.Metric, ":")
	return f.Compare == "value" && strings.HasSuffix(name, "_ratio")
}

// text formats the mean and, if there is one, the half width of the interval.
func (e Estimate) text(format string) string {
	if e.Half == 0 {
		return fmt.Sprintf(format, e.Mean)
	}
	return fmt.Sprintf(format, e.Mean) + " ± " + strings.TrimPrefix(fmt.Sprintf(format, e.Half), "+")
}

// target formats the expected value of a comparison.
func (f Figure) target(format string) string {
	switch {
	case f.Published != nil:
		return fmt.Sprintf(format, *f.Published)
	case f.Least != nil && f.Most != nil:
		return fmt.Sprintf(format+" to "+format, *f.Least, *f.Most)
	case f.Least != nil:
		return "≥ " + fmt.Sprintf(format, *f.Least)
	}
	return "≤ " + fmt.Sprintf(format, *f.Most)
}
