package simulate

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	_ "embed"
)

//go:embed report.html.tmpl
var pageSource string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"color": func(i int) string { return palette[i%len(palette)] },
	// Beyond the end of the palette the colours repeat, dashed.
	"dash": func(i int) string { return []string{"none", "6 4", "2 3"}[i/len(palette)%3] },
}).Parse(pageSource))

// palette can be distinguished by colour-blind readers too (Okabe and Ito).
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#5b5b5b"}

// WriteHTML writes one self-contained page: the table, the distribution of time-to-first-token, and time series.
func (r *Result) WriteHTML(w io.Writer) error {
	type row struct {
		Name  string
		Cells []string
	}
	data := struct {
		Title    string
		Columns  []string
		Rows     []row
		Bars     []bar
		Charts   []chart
		Sections []functionTable
	}{Title: r.Title}
	for _, c := range columnsOf {
		data.Columns = append(data.Columns, c.title)
	}
	for i := range r.Variants {
		o := &r.Variants[i]
		cells := make([]string, len(columnsOf))
		for k, c := range columnsOf {
			e := o.Estimate(c.value)
			cells[k] = fmt.Sprintf(c.format, e.Mean)
			if len(o.Runs) > 1 {
				cells[k] += fmt.Sprintf(" ± "+c.format, e.Half)
			}
		}
		data.Rows = append(data.Rows, row{o.Name, cells})
		data.Sections = append(data.Sections, functionRows(o))
	}
	data.Charts = []chart{
		r.distribution(),
		r.overTime("Requests without a first token", "requests", false, func(p Point) float64 { return float64(p.Waiting) }),
		r.overTime("p99 time to first token, by arrival", "seconds", true, func(p Point) float64 { return p.P99 }),
		r.overTime("Cold starts", "per interval", false, func(p Point) float64 { return float64(p.Cold) }),
	}
	data.Bars = r.bars()
	return page.Execute(w, data)
}

type functionTable struct {
	Name  string
	Head  []string
	Lines [][]string
}

func functionRows(o *Outcome) functionTable {
	t := functionTable{Name: o.Name, Head: []string{"function", "requests", "TTFT p50 s", "p90", "p99", "cold %", "GPU s", "SLO %"}}
	for _, f := range o.Runs[0].Functions {
		t.Lines = append(t.Lines, []string{
			f.Name, fmt.Sprint(f.Requests), fmt.Sprintf("%.3f", f.TTFTP50), fmt.Sprintf("%.3f", f.TTFTP90), fmt.Sprintf("%.3f", f.TTFTP99),
			fmt.Sprintf("%.1f", f.ColdRatio*100), fmt.Sprintf("%.0f", f.GPUSeconds), fmt.Sprintf("%.1f", f.SLO*100),
		})
	}
	return t
}

// chart is a picture in a box of chartW × chartH units with margins for the axes.
type chart struct {
	Title  string
	YLabel string
	XLabel string
	Lines  []polyline
	XTicks []tick
	YTicks []tick
}

type polyline struct {
	Name   string
	Points string
	Index  int
}

type bar struct {
	Name, Value string
	Percent     float64 // of the longest
	Index       int
}

type tick struct {
	At    float64
	Label string
}

const (
	chartW, chartH = 640.0, 260.0
	left, right    = 56.0, 12.0
	top, bottom    = 12.0, 34.0
)

// scale maps values to positions along an axis.
type scale struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (s scale) at(v float64) float64 {
	lo, hi := s.lo, s.hi
	if s.log {
		v, lo, hi = math.Log10(math.Max(v, s.lo)), math.Log10(lo), math.Log10(hi)
	}
	if hi == lo {
		return s.from
	}
	return s.from + (v-lo)/(hi-lo)*(s.to-s.from)
}

// ticks are decades on a logarithmic axis, and otherwise about five round numbers.
func (s scale) ticks() []tick {
	var out []tick
	if s.log {
		for e := math.Ceil(math.Log10(s.lo) - 1e-9); e <= math.Log10(s.hi)+1e-9; e++ {
			v := math.Pow(10, e)
			out = append(out, tick{s.at(v), fmt.Sprintf("%g", v)})
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10(math.Max(s.hi-s.lo, 1e-12))))
	for _, f := range []float64{0.1, 0.2, 0.5, 1, 2} {
		if (s.hi-s.lo)/(step*f) <= 6 {
			step *= f
			break
		}
	}
	for v := math.Ceil(s.lo/step) * step; v <= s.hi*(1+1e-9); v += step {
		out = append(out, tick{s.at(v), fmt.Sprintf("%.4g", v)})
	}
	return out
}

func curve(n int, point func(i int) (x, y float64)) string {
	var b strings.Builder
	for i := range n {
		x, y := point(i)
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	return b.String()
}

// distribution has a logarithmic axis, because warm and cold starts differ by orders of magnitude.
func (r *Result) distribution() chart {
	lo, hi := math.Inf(1), 0.0
	for i := range r.Variants {
		q := r.Variants[i].Runs[0].Quantiles
		if q[0] > 0 {
			lo = math.Min(lo, q[0])
		}
		hi = math.Max(hi, q[100])
	}
	if hi == 0 || math.IsInf(lo, 1) {
		lo, hi = 0.001, 1
	}
	x := scale{lo: math.Pow(10, math.Floor(math.Log10(lo))), hi: math.Pow(10, math.Ceil(math.Log10(hi)+1e-9)), from: left, to: chartW - right, log: true}
	y := scale{lo: 0, hi: 100, from: chartH - bottom, to: top}
	c := chart{Title: "Distribution of time to first token", XLabel: "seconds", YLabel: "% of requests at most", XTicks: x.ticks(), YTicks: y.ticks()}
	for i := range r.Variants {
		q := r.Variants[i].Runs[0].Quantiles
		c.Lines = append(c.Lines, polyline{r.Variants[i].Name, curve(len(q), func(k int) (float64, float64) { return x.at(q[k]), y.at(float64(k)) }), i})
	}
	return c
}

// overTime is a time series of the first seed.
func (r *Result) overTime(title, unit string, log bool, value func(Point) float64) chart {
	end, lo, hi := 0.0, math.Inf(1), 0.0
	for i := range r.Variants {
		for _, p := range r.Variants[i].Runs[0].Series {
			end = math.Max(end, p.At)
			hi = math.Max(hi, value(p))
			if v := value(p); v > 0 {
				lo = math.Min(lo, v)
			}
		}
	}
	if hi == 0 {
		lo, hi = 0.1, 1
	}
	y := scale{lo: 0, hi: hi, from: chartH - bottom, to: top}
	if log {
		y.lo, y.hi, y.log = math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)+1e-9)), true
	}
	x := scale{lo: 0, hi: math.Max(end, 1e-9), from: left, to: chartW - right}
	c := chart{Title: title, XLabel: "seconds since the start", YLabel: unit, XTicks: x.ticks(), YTicks: y.ticks()}
	for i := range r.Variants {
		series := r.Variants[i].Runs[0].Series
		c.Lines = append(c.Lines, polyline{r.Variants[i].Name, curve(len(series), func(k int) (float64, float64) { return x.at(series[k].At), y.at(value(series[k])) }), i})
	}
	return c
}

// bars compares the p99 of the variants.
func (r *Result) bars() []bar {
	p99 := func(s *Summary) float64 { return s.TTFTP99 }
	most := 1e-9
	for i := range r.Variants {
		most = math.Max(most, r.Variants[i].Estimate(p99).Mean)
	}
	var out []bar
	for i := range r.Variants {
		v := r.Variants[i].Estimate(p99).Mean
		out = append(out, bar{r.Variants[i].Name, seconds(v), 100 * v / most, i})
	}
	return out
}

// seconds formats a time with at least three digits and never with an exponent.
func seconds(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f s", v)
	}
	return fmt.Sprintf("%.3g s", v)
}
